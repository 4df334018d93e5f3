/* temporary */
#include "games/format.h"
struct xph_selector {
    exphil_context *context;
    exphil_selection s;
};
exphil_status xph_selector_create(exphil_context *context, const exphil_selection *selection,
                                  xph_selector **selector, exphil_error *error)
{
    xph_selector *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = context;
    made->s = (exphil_selection)EXPHIL_SELECTION_INIT;
    if (selection) made->s = *selection;
    *selector = made;
    return EXPHIL_OK;
}
void xph_selector_free(xph_selector *selector)
{
    if (selector) xph_free(selector->context, selector, sizeof *selector);
}
const exphil_selection *xph_selector_of(const xph_selector *selector)
{
    return &selector->s;
}
int32_t xph_selector_refuses(const xph_selector *selector, const xph_game_entry *entry, int32_t port,
                             int32_t *opponent)
{
    if (entry->port[port - 1].type != 0) return EXPHIL_REFUSED_COMPUTER;
    *opponent = 0;
    for (int32_t p = 1; p <= 4; p++)
        if (p != port && xph_game_plays(entry, p) &&
            (!entry->teams || entry->port[p - 1].team != entry->port[port - 1].team) && !*opponent)
            *opponent = p;
    if (selector->s.characters &&
        xph_melee_character_find(selector->s.characters) != entry->port[port - 1].character)
        return EXPHIL_REFUSED_CHARACTER;
    return -1;
}
struct xph_game_groups {
    int x;
};
exphil_status xph_game_groups_make(const exphil_games *games, xph_game_groups **groups, exphil_error *error)
{
    (void)games;
    (void)error;
    *groups = NULL;
    return EXPHIL_OK;
}
void xph_game_groups_free(xph_game_groups *groups)
{
    (void)groups;
}
uint64_t xph_game_group(const xph_game_groups *groups, int64_t game)
{
    (void)groups;
    (void)game;
    return 0;
}
bool xph_game_is_duplicate(const xph_game_groups *groups, int64_t game)
{
    (void)groups;
    (void)game;
    return false;
}
const char *exphil_refused_name(int32_t reason)
{
    (void)reason;
    return NULL;
}
