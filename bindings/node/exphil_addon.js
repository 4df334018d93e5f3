'use strict';
// The addon, or where there is none yet, how it is built.

try {
  module.exports = require('./exphil.node');
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') throw error;
  throw new Error(`exphil.node is not built: run sh '${__dirname}/build_addon.sh'`, { cause: error });
}
