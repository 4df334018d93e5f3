/* The plugin of the emulated GPU is made of a library; a module needs a file of its own. */
extern const int exphil_emulated_plugin;
const int exphil_emulated_plugin = 1;
