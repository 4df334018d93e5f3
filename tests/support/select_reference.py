"""Counts who is taken of replays, and why others are not, by its own reading: the reference that the library is compared with.

    select_reference.py READER SELECTIONS REPLAYS

READER is the path of slp_reference.py, which is no part of this repository. SELECTIONS has one JSON object a line, with the
fields of exphil_selection that are not 0; REPLAYS one path a line. For each selection a line is printed: players, taken,
then the players refused for each EXPHIL_REFUSED_... but EMPTY. Nothing here is the library's: what players did, who won,
which recordings are of one match, all is counted again from the events; recordings are compared input by input.
"""
import importlib.util
import json
import struct
import sys

STAGE, SHORT, LONG, EARLY, LATE, VERSION, TEAMS, ITEMS, PLAYERS, INCOMPLETE, COMPUTER_GAME, COMPUTER = range(12)
(CHARACTER, PORT, RESULT, DAMAGE, STOCKS, SELF_DESTRUCTS, INPUT, OPPONENT, OPPONENT_PORT, EMPTY, DUPLICATE,
 UNKNOWN) = range(12, 24)
NAMES = {"fox": 2, "falco": 20, "marth": 9, "captain_falcon": 0, "peach": 12, "jigglypuff": 15, "sheik": 19, "kirby": 4,
         "samus": 16, "mewtwo": 10, "ice_climbers": 14, "zelda": 18, "fountain_of_dreams": 2, "pokemon_stadium": 3,
         "yoshis_story": 8, "dream_land_64": 28, "battlefield": 31, "final_destination": 32}
RUNGS = (512, 2048, 8192)


def load(path):
    spec = importlib.util.spec_from_file_location("slp_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def days(text):
    """Days from 1970-01-01 to a date, counted year by year."""
    try:
        year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
    except ValueError:
        return 0
    leap = lambda y: y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
    months = [31, 29 if leap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return sum(366 if leap(y) else 365 for y in range(1970, year)) + sum(months[:month - 1]) + day - 1


class Game:
    def __init__(self, reader, path):
        with open(path, "rb") as file:
            replay = reader.Replay(file.read())
        s, self.end = replay.settings(), replay.end()
        self.frames = [i.frame for i in replay.frames]
        self.version = replay.version[0] << 16 | replay.version[1] << 8 | replay.version[2]
        self.stage, self.teams, self.item_spawn = s["stage"], s["is_teams"], s["item_spawn"]
        self.players = {p["port"]: p for p in s["players"]}
        self.day = days((replay.metadata or {}).get("startAt") or "")
        cut = replay.stop_reason == "truncated" or any("past the file" in p for p in replay.problems)
        gaps = any(b != a + 1 for a, b in zip(self.frames, self.frames[1:]))
        self.complete = self.end is not None and not cut and not gaps
        self.count(replay)
        self.find_winner(s)
        assert s["seed"]  # of these replays
        self.start = (s["seed"], self.stage, s["game_mode"], self.teams,
                      tuple((q, p["type"], p["character"], p["costume"], p["team"] if self.teams else 0)
                            for q, p in sorted(self.players.items())))
        self.match = (s["match_id"], s["game_number"], s["tiebreaker"], self.stage,
                      tuple((q, p["character"]) for q, p in sorted(self.players.items()))) if s["match_id"] else None
        final = [i.latest_finalized for i in replay.frames
                 if i.latest_finalized is not None and i.latest_finalized <= self.frames[-1]]
        self.certain = max(final) if final else self.frames[-1] - 16
        self.inputs = self.all_inputs(replay)

    def count(self, replay):
        zero = {p: 0 for p in range(1, 5)}
        self.stocks_taken, self.self_destructs, self.end_stocks = dict(zero), dict(zero), dict(zero)
        self.input_frames, dealt = dict(zero), {p: 0.0 for p in range(1, 5)}
        last = {}
        for instance in replay.frames:
            for port in range(1, 5):
                pre, post = instance.pre.get((port - 1, 0)), instance.post.get((port - 1, 0))
                if pre is None or post is None:
                    continue
                sticks = struct.unpack(">5f", pre[0x19:0x2D])
                if struct.unpack(">H", pre[0x31:0x33])[0] or any(v != 0 for v in sticks):
                    self.input_frames[port] += 1
                percent, = struct.unpack(">f", post[0x16:0x1A])
                hitter, stocks = post[0x20] + 1, post[0x21]
                self.end_stocks[port] = stocks
                if port in last:
                    before, before_hitter, before_stocks = last[port]
                    if stocks == before_stocks and 0 < percent - before < 1000 and hitter <= 4 and hitter != port:
                        dealt[hitter] += percent - before
                    if stocks < before_stocks:
                        own = before_hitter > 4 or before_hitter == port
                        (self.self_destructs if own else self.stocks_taken)[port if own else before_hitter] += 1
                last[port] = (percent, hitter, stocks)
        self.percent = {port: seen[0] for port, seen in last.items()}
        self.damage = {p: min(int(v), 65535) for p, v in dealt.items()}

    def find_winner(self, settings):
        """The rules of exphil_slp_result_get, in their order. A side: its ports, or those of its team."""
        self.winner = 0
        sides = {}
        for port, player in sorted(self.players.items()):
            sides.setdefault(player["team"] if self.teams else port, []).append(port)
        if len(sides) < 2 or settings["major_scene"] in (15, 32):
            return
        whole = lambda port: min(int(self.percent[port]), 999) if self.percent[port] > 0 else 0
        stocks = {side: sum(self.end_stocks[port] for port in ports) for side, ports in sides.items()}
        percent = {side: sum(whole(port) for port in ports if self.end_stocks[port] > 0) for side, ports in sides.items()}
        known = settings["game_mode"] == 1 and all(port in self.percent for port in self.players)
        alive = [side for side in sides if stocks[side] > 0]
        winner = None
        if known and len(alive) == 1:
            winner = alive[0]
        elif self.end is None:
            return
        elif known and self.end["method"] == 1:
            order = sorted(sides, key=lambda side: (-stocks[side], percent[side]))
            best = [(stocks[side], percent[side]) for side in order[:2]]
            winner = order[0] if best[0] != best[1] else None
        elif self.quitter() or self.end["method"] in (0, 7):
            others = [side for side in sides if self.quitter() not in sides[side]]
            winner = others[0] if self.quitter() and len(sides) == 2 else None
        elif self.end["placements"] is not None and self.end["placements"].count(0) == 1:
            first = self.end["placements"].index(0) + 1
            winner = next((side for side in sides if first in sides[side]), None)
        self.winner = sides[winner][0] if winner is not None else 0

    def quitter(self):
        lras = self.end["lras"]
        return lras + 1 if lras is not None and lras >= 0 and lras + 1 in self.players else 0

    def all_inputs(self, replay):
        """By frame: sticks, trigger and buttons of the leaders."""
        return {i.frame: tuple((p, i.pre[p, 0][0x19:0x33]) for p in range(4) if (p, 0) in i.pre and (p, 0) in i.post)
                for i in replay.frames}

    def rung(self):
        """How many frames from -39 on are certain, as the highest of RUNGS; 0: less than the least."""
        best = 0
        for rung in RUNGS:
            if rung - 40 > self.certain or any(f not in self.inputs for f in range(-39, rung - 39)):
                break
            best = rung
        return best


def same_match(a, b):
    if a.match and a.match == b.match and a.start == b.start:
        return True
    rung = min(a.rung(), b.rung())
    if not rung or any(a.inputs[f] != b.inputs[f] for f in range(-39, rung - 39)):
        return False
    ends = [(g.frames[-1] + 1000000) // 64 for g in (a, b)]
    return not (a.complete and b.complete) or abs(ends[0] - ends[1]) <= 1


def group(games):
    """Lists of games that may be of one match."""
    groups = []
    for game in games:
        mine = [g for g in groups if any(game.start == o.start or (game.match and game.match == o.match) for o in g)]
        groups = [g for g in groups if g not in mine] + [sum(mine, []) + [game]]
    return groups


def refused(game, port, s):
    """The reason, or None."""
    me, get = game.players[port], s.get
    names = lambda field: {NAMES[w] if w in NAMES else int(w) for w in s[field].replace(",", " ").split()}
    humans = sum(p["type"] == 0 for p in game.players.values())
    opponent = get("opponent_port", 0)
    others = [q for q, p in sorted(game.players.items()) if q != port and not (game.teams and p["team"] == me["team"])]
    won = game.winner == port or (game.teams and game.winner in game.players and
                                  game.players[game.winner]["team"] == me["team"])
    dated = get("first_day") or get("last_day")
    if "stages" in s and game.stage not in names("stages"):
        return STAGE
    if len(game.frames) < get("least_frames", 0):
        return SHORT
    if get("most_frames") and len(game.frames) > s["most_frames"]:
        return LONG
    if dated and not game.day:
        return UNKNOWN
    if game.day < get("first_day", 0):
        return EARLY
    if get("last_day") and game.day > s["last_day"]:
        return LATE
    if game.version < get("least_version", 0):
        return VERSION
    if get("teams") and (s["teams"] == 2) != bool(game.teams):
        return TEAMS
    if get("items") and (s["items"] == 2) != (game.item_spawn >= 0):
        return ITEMS
    if get("players") and s["players"] != len(game.players):
        return PLAYERS
    if get("complete") and not game.complete:
        return INCOMPLETE
    if get("humans") and humans != len(game.players):
        return COMPUTER_GAME
    if me["type"] != 0:
        return COMPUTER
    if "characters" in s and me["character"] not in names("characters"):
        return CHARACTER
    if get("port") and s["port"] != port:
        return PORT
    if get("result") and not game.winner:
        return UNKNOWN
    if get("result") and won != (s["result"] == 1):
        return RESULT
    if game.damage[port] < get("least_damage", 0):
        return DAMAGE
    if game.stocks_taken[port] < get("least_stocks", 0):
        return STOCKS
    if get("self_destructs_below") and game.self_destructs[port] >= s["self_destructs_below"]:
        return SELF_DESTRUCTS
    if game.input_frames[port] / len(game.frames) < get("least_input", 0):
        return INPUT
    if opponent and (opponent == port or opponent not in game.players):
        return OPPONENT_PORT
    other = opponent or (others[0] if others else 0)
    if "opponents" in s and (not other or game.players[other]["character"] not in names("opponents")):
        return OPPONENT
    return None


def count(groups, s):
    counts, players, taken = [0] * 24, 0, 0
    for games in groups:
        kept = []
        for game in sorted(games, key=lambda g: (not g.complete, -len(g.frames))):
            reasons = [refused(game, port, s) for port in game.players]
            players += len(reasons)
            asked = None in reasons
            again = asked and not s.get("duplicates") and any(same_match(game, k) for k in kept)
            if asked and not again:
                kept.append(game)
            for reason in reasons:
                if reason is None and again:
                    reason = DUPLICATE
                if reason is None:
                    taken += 1
                else:
                    counts[reason] += 1
    return players, taken, counts


def main(reader, selections, replays):
    reader = load(reader)
    with open(replays, encoding="utf-8") as file:
        games = [Game(reader, path.rstrip("\n")) for path in file]
    groups = group(games)
    with open(selections, encoding="utf-8") as file:
        for line in file:
            players, taken, counts = count(groups, json.loads(line))
            print(players, taken, *counts)


main(*sys.argv[1:])
