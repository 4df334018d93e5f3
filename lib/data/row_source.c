/* What makes rows of games, as blocks share it: references alone. */
#include "data/game_rows.h"

exphil_status xph_row_source_create(const exphil_games *games, const xph_melee_layout *layout,
                                    const xph_melee_codec *codec, xph_row_source **source,
                                    exphil_error *error)
{
    exphil_context *context = xph_games_context(games);
    xph_row_source *made = xph_alloc(context, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    *made = (xph_row_source){.context = xph_context_retain(context),
                             .references = 1,
                             .games = xph_games_retain(games),
                             .layout = layout,
                             .codec = codec};
    *source = made;
    return EXPHIL_OK;
}

xph_row_source *xph_row_source_retain(xph_row_source *source)
{
    atomic_fetch_add(&source->references, 1);
    return source;
}

void xph_row_source_release(xph_row_source *source)
{
    if (!source || atomic_fetch_sub(&source->references, 1) != 1) return;
    exphil_context *context = source->context;
    xph_games_release(source->games);
    xph_free(context, source, sizeof *source);
    xph_context_release(context);
}
