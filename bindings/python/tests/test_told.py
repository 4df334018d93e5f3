"""Conditions and several delays: a policy that is told who plays and how late its actions are."""
import numpy as np
import pytest

import exphil

SPEC = exphil.Spec("told", "pad", 1, (exphil.HeadSpec("move", "categorical", 3),))
PLAYER = exphil.Condition("player", 2, width=4, mask=0.25)


@pytest.fixture(scope="module")
def dataset():
    """Player 1 moves one way, player 2 the other: the frame does not tell."""
    made = exphil.Dataset(SPEC)
    for game in range(8):
        move = 1 + game % 2
        made.add_rows(np.full((200, 1), 0.5, np.float32), None, np.full((200, 1), move, np.int32), game=game)
        made.condition("player", game, move)
    return made


@pytest.fixture(scope="module")
def model():
    return exphil.Model(
        SPEC, blocks="gru", hidden=16, head_width=16, no_previous_action=True, neutral_start=True,
        conditions=[PLAYER], delays=[0, 2])


def test_the_model_says_what_it_is_told(model):
    sampling = model.sampling()
    assert sampling["conditions"] == [PLAYER] and sampling["delays"] == [0, 2] and sampling["delay_frames"] == 2
    assert model.info.condition_count == 1 and model.info.delay_count == 2


def test_batches_have_the_columns(model, dataset):
    batch = exphil.Prefetcher(dataset, model, batch=4, time=20).next().copy()
    assert batch.conditions.shape == (4, 20, 2)
    assert set(np.unique(batch.conditions[..., 0])) <= {0, 1, 2} and set(np.unique(batch.conditions[..., 1])) <= {1, 2}
    assert exphil.Trainer(model).step_batch(batch).loss > 0
    plain = exphil.Prefetcher(dataset, delay_frames=2, action_slots=2, drop_past=0.5, workers=2).next()
    assert plain.conditions is None and plain.past.shape == (16, 60, 2, 1)


def test_a_policy_plays_as_it_is_told(model, dataset):
    trainer = exphil.Trainer(model, dataset, batch=4, time=20, rate=1e-2)
    for _ in range(150):
        trainer.step()
    trained = trainer.model()
    told = trained.evaluate(dataset, delay_frames=2, alone_most_frames=100)
    assert told.exact_accuracy > 0.95 and told.alone_accuracy > 0.9
    assert trained.evaluate(dataset, conditions=[0]).exact_accuracy < 0.7
    with pytest.raises(exphil.MismatchError, match="0, 2"):
        trained.evaluate(dataset, delay_frames=1)
    session = exphil.Session(trained, delay_frames=2, deterministic=True, deliver="decided", conditions=[1])
    for player in (1, 2):
        session.reset()
        session.conditions_set([player], stream=0)
        for _ in range(20):
            action = session.step_row(np.array([[0.5]], np.float32))
        assert action.item() == player
    with pytest.raises(exphil.InvalidError, match="player is 3"):
        session.conditions_set([3])


def test_values_of_episodes_go_first(model, dataset):
    rows = np.full((50, 1), 0.5, np.float32), None, np.ones((50, 1), np.int32)
    own = exphil.Dataset(SPEC)
    for _ in range(3):
        own.add_rows(*rows, game=7)
    own.condition("player", 7, 1)
    own.condition_episodes("player", 1, 2, 2)
    sure = [exphil.Condition("player", 2)]
    shown = exphil.Prefetcher(own, conditions=sure, batch=3, time=50, in_order=True).next().conditions
    assert sorted(shown[:, 0, 0]) == [1, 2, 2]
    with pytest.raises(exphil.InvalidError, match="value is -1"):
        own.condition("player", 7, -1)
    with pytest.raises(exphil.InvalidError, match="there are 3"):
        own.condition_episodes("player", 2, 2, 1)
