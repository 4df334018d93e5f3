/* Names of characters and stages by external id (what a game start event holds). Searching ignores case
 * and everything but letters and digits, so "Dr. Mario", "dr_mario" and "DrMario" are the same. */
#include "melee/melee.h"

#include <stdio.h>

/* By external id. */
static const char *const characters[] = {
    "captain_falcon", "donkey_kong", "fox",   "game_and_watch", "kirby",     "bowser", "link",
    "luigi",          "mario",       "marth", "mewtwo",         "ness",      "peach",  "pikachu",
    "ice_climbers",   "jigglypuff",  "samus", "yoshi",          "zelda",     "sheik",  "falco",
    "young_link",     "dr_mario",    "roy",   "pichu",          "ganondorf",
};

static const struct stage {
    int32_t id;
    const char *name;
} stages[] = {
    {2, "fountain_of_dreams"},
    {3, "pokemon_stadium"},
    {4, "peachs_castle"},
    {5, "kongo_jungle"},
    {6, "brinstar"},
    {7, "corneria"},
    {8, "yoshis_story"},
    {9, "onett"},
    {10, "mute_city"},
    {11, "rainbow_cruise"},
    {12, "jungle_japes"},
    {13, "great_bay"},
    {14, "hyrule_temple"},
    {15, "brinstar_depths"},
    {16, "yoshis_island"},
    {17, "green_greens"},
    {18, "fourside"},
    {19, "mushroom_kingdom_1"},
    {20, "mushroom_kingdom_2"},
    {22, "venom"},
    {23, "poke_floats"},
    {24, "big_blue"},
    {25, "icicle_mountain"},
    {27, "flat_zone"},
    {28, "dream_land_64"},
    {29, "yoshis_island_64"},
    {30, "kongo_jungle_64"},
    {31, "battlefield"},
    {32, "final_destination"},
    {84, "home_run_contest"},
};

#define CHARACTERS ((int32_t)(sizeof characters / sizeof characters[0]))
#define STAGES     ((int32_t)(sizeof stages / sizeof stages[0]))

/* Next letter (in lower case) or digit of a text, 0 at its end. ASCII only, so no locale shows. */
static char next_sign(const char **text)
{
    for (char c; (c = **text) != '\0';) {
        (*text)++;
        if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) return c;
    }
    return '\0';
}

static bool same_name(const char *a, const char *b)
{
    for (;;) {
        char x = next_sign(&a), y = next_sign(&b);
        if (x != y) return false;
        if (!x) return true;
    }
}

const char *xph_melee_character_name(int32_t external)
{
    return external >= 0 && external < CHARACTERS ? characters[external] : NULL;
}

int32_t xph_melee_character_find(const char *name)
{
    for (int32_t i = 0; name && i < CHARACTERS; i++) {
        if (same_name(name, characters[i])) return i;
    }
    return -1;
}

const char *xph_melee_stage_name(int32_t external)
{
    for (int32_t i = 0; i < STAGES; i++) {
        if (stages[i].id == external) return stages[i].name;
    }
    return NULL;
}

int32_t xph_melee_stage_find(const char *name)
{
    for (int32_t i = 0; name && i < STAGES; i++) {
        if (same_name(name, stages[i].name)) return stages[i].id;
    }
    return -1;
}

/* Adds a name to a list of those alike if it begins as the one that was looked for. */
static void add_alike(const char *known, const char *name, char *text, size_t bytes)
{
    const char *other = known;
    size_t at = strlen(text);
    if (next_sign(&other) != next_sign(&name)) return;
    if (at + strlen(known) + sizeof "; some are " <= bytes)
        snprintf(text + at, bytes - at, "%s%s", at ? ", " : "; some are ", known);
}

void xph_melee_character_alike(const char *name, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int32_t i = 0; i < CHARACTERS; i++) add_alike(characters[i], name, text, bytes);
}

void xph_melee_stage_alike(const char *name, char *text, size_t bytes)
{
    text[0] = '\0';
    for (int32_t i = 0; i < STAGES; i++) add_alike(stages[i].name, name, text, bytes);
}

const char *exphil_melee_character_name(int32_t external)
{
    return xph_melee_character_name(external);
}

const char *exphil_melee_stage_name(int32_t external)
{
    return xph_melee_stage_name(external);
}
