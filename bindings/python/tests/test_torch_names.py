"""Modules of a policy are found by their names, whatever an id, a condition or a head is called: also by what torch itself has."""
import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (package python3-torch): exphil.torch is untested")

from torch_case import HEADS, SIZES, SPEC, library, shake  # noqa: E402

import exphil  # noqa: E402
import exphil.torch  # noqa: E402

# What modules of torch have: methods that a policy is changed by, those that torch calls on parts, attributes, and names that
# stand below or beside others.
NAMES = ("type", "half", "train", "forward", "training", "state_dict", "named_modules", "apply", "float", "put", "weight", "rules")
CLASHING = exphil.Spec(
    "clashes", "four", 3,
    tuple(exphil.HeadSpec(name, "categorical", 3) for name in (
        "train", "decide", "codec", "trunk", "past", "type", "train_", "half.type", "training.train", "_apply")),
    tuple(exphil.IdSpec(name, 3 + i, 4) for i, name in enumerate(
        (*NAMES, "train_", "train_.train", "deep.type", "deep.train", "deep", "a.type.train", "a", "a.type", "_modules"))))
WORDS = dict(SIZES, blocks="mlp", no_previous_action=True)
POLICIES = {
    "melee": lambda: exphil.torch.Policy(exphil.melee.spec(), **WORDS),
    "small": lambda: exphil.torch.Policy(SPEC, **WORDS),
    "clashing": lambda: exphil.torch.Policy(
        CLASHING, conditions=tuple(exphil.Condition(name, 2, 4) for name in ("train", "type", "x.half")), **WORDS),
    "clashing heads": lambda: exphil.torch.Policy(CLASHING, head_layers=1, heads="autoregressive", **WORDS),
}


def rows(policy, lead=(1, 4)):
    c, draw = policy.config, torch.Generator().manual_seed(3)
    ids = [torch.randint(one.entries, (*lead, 1), generator=draw) for one in c.ids]
    return torch.randn(*lead, c.float_count, generator=draw), torch.cat(ids, -1)


def given(policy):
    """Keywords of forward that this policy needs."""
    return {"actions": torch.zeros(1, 4, len(policy.config.heads), dtype=torch.int64)} if policy.heads.follows else {}


@pytest.mark.parametrize("name", POLICIES)
def test_modules_are_found_by_their_names(name):
    policy = POLICIES[name]()
    for other in (policy, copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        for path, module in other.named_modules():
            assert other.get_submodule(path) is module, path
        for path, parameter in other.named_parameters():
            assert other.get_parameter(path) is parameter, path
        if name in ("melee", "small"):  # by the names of a file, too
            for path, value in other.state_dict(keep_vars=True).items():
                assert other.get_parameter(path) is value, path
    own = [path for path, _ in POLICIES["small"]().named_parameters()]
    assert "ids.item0.type_.weight" in own and "ids.stage.weight" in own and "input.weight" in own


@pytest.mark.parametrize("name", POLICIES)
def test_names_of_files_stay(name, tmp_path):
    """The library reads what is saved, each tensor under its own name; a strict load takes all of it, in torch and from a file."""
    policy = shake(POLICIES[name]())
    model = library(policy, tmp_path)
    state = policy.state_dict()
    assert {one.name for one in model.tensors()} == set(state) and len(state) == len(list(policy.parameters()))
    for path, value in state.items():
        assert torch.equal(torch.from_numpy(model.tensor_get(path)), value), path
    fresh = POLICIES[name]()
    fresh.load_state_dict(state, strict=True)
    loaded = exphil.torch.load(tmp_path / "given.safetensors")
    out = policy(*rows(policy), **given(policy)).logits
    for other in (fresh, loaded):
        assert torch.equal(other(*rows(policy), **given(policy)).logits, out)
    path = next(iter(state))
    with pytest.raises(RuntimeError, match="Missing key"):
        fresh.load_state_dict({key: value for key, value in state.items() if key != path})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        fresh.load_state_dict(dict(state, **{"ids.more.weight": state[path]}))


@pytest.mark.parametrize("name", POLICIES)
def test_torch_calls_reach_every_module(name):
    policy, seen = POLICIES[name](), []
    assert not any(module.training for module in policy.eval().modules())
    assert all(module.training for module in policy.train().modules())
    policy.apply(seen.append)
    assert len(seen) == len(list(policy.modules()))
    assert {value.dtype for value in policy.double().parameters()} == {torch.float64}
    policy.requires_grad_(False).zero_grad()
    assert not any(value.requires_grad for value in policy.parameters())


@pytest.mark.parametrize("name", POLICIES)
def test_calls_with_other_weights(name):
    """With other weights in the place of a policy's own. Heads that are called as a part ("trunk") are one with it, which torch
    1.13's way cannot do."""
    if name == "clashing heads" and not hasattr(torch, "func"):
        pytest.skip(f"torch {torch.__version__} has no torch.func: calls with other weights are untested with such heads")
    policy, other = POLICIES[name](), shake(POLICIES[name](), seed=9)
    call = torch.func.functional_call if hasattr(torch, "func") else torch.nn.utils.stateless.functional_call
    weights = {path: value.detach() for path, value in other.named_parameters()}
    made = call(policy, weights, rows(policy), given(policy)).logits
    if name in ("melee", "small"):
        assert torch.equal(call(policy, other.state_dict(), rows(policy), given(policy)).logits, made)
    assert torch.equal(made, other(*rows(policy), **given(policy)).logits)
    assert not torch.equal(made, policy(*rows(policy), **given(policy)).logits)


@pytest.mark.parametrize("name", POLICIES)
def test_exported_chunks(name):
    if not hasattr(torch, "export"):
        pytest.skip(f"torch {torch.__version__} has no torch.export: exported chunks are untested")
    policy = POLICIES[name]().eval()
    program = torch.export.export(policy, rows(policy), given(policy), strict=False)
    assert torch.allclose(program.module()(*rows(policy), **given(policy)).logits, policy(*rows(policy), **given(policy)).logits)
    assert len(program.state_dict) == len(policy.state_dict())


def test_a_table_tells_its_size():
    assert "Table(7, 8)" in repr(POLICIES["small"]()) and len(HEADS) == 4
