"""The DDP wrap in every spelling and shape goes; the raw model stays where it was."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, check_section, convert, migrate, script

ONE = "model = Net().cuda()\n"


def test_a_process_group_of_its_own_is_refused() -> None:
    source = script(wrap="model = DDP(Net().cuda(), process_group=dist.new_group([0, 1]))")
    check_refused(source, "MG903", "process_group=", "process group of its own")


@pytest.mark.parametrize(
    ("imports", "wrap"),
    [
        ("from torch.nn.parallel import DistributedDataParallel", "DistributedDataParallel"),
        ("from torch.nn.parallel import DistributedDataParallel as Wrapped", "Wrapped"),
        ("from torch.nn.parallel.distributed import DistributedDataParallel", "DistributedDataParallel"),
        ("import torch.nn.parallel", "torch.nn.parallel.DistributedDataParallel"),
        ("", "nn.parallel.DistributedDataParallel"),
        ("import torch.nn.parallel as parallel", "parallel.DistributedDataParallel"),
        ("from torch.nn import parallel", "parallel.DistributedDataParallel"),
        ("from torch import nn as layers", "layers.parallel.DistributedDataParallel"),
        ("import torch as th", "th.nn.parallel.DistributedDataParallel"),
        ("from apex.parallel import DistributedDataParallel as ApexDDP", "ApexDDP"),
        ("import apex", "apex.parallel.DistributedDataParallel"),
    ],
)
def test_every_spelling_of_the_class_is_known(imports: str, wrap: str) -> None:
    migrated = check_section("wrap", f"model = {wrap}(Net().cuda())", ONE, imports=imports)
    migrated.said("MG101", f"model = {wrap}(", Kind.CONVERTED)
    assert "DistributedDataParallel(" not in migrated.code


def test_both_of_two_guarded_imports_are_known() -> None:
    migrated = convert(
        imports="""
            try:
                from apex.parallel import DistributedDataParallel as AnyDDP
            except ImportError:
                from torch.nn.parallel import DistributedDataParallel as AnyDDP
            """,
        wrap="model = AnyDDP(Net().cuda())",
    )
    assert migrated.section("wrap") == ONE


def test_the_module_keyword_is_the_model() -> None:
    check_section("wrap", "model = DDP(module=Net().cuda(), device_ids=None)", ONE)


def test_all_keywords_of_the_reducer_are_named() -> None:
    migrated = check_section(
        "wrap",
        """
        model = DDP(Net().cuda(), device_ids=[local_rank], output_device=local_rank, dim=0,
                    find_unused_parameters=True, bucket_cap_mb=100, check_reduction=False,
                    gradient_as_bucket_view=True, static_graph=False, broadcast_buffers=False)
        """,
        ONE,
    )
    change = migrated.said("MG103", "bucket_cap_mb=100")
    for name in ("device_ids", "output_device", "find_unused_parameters", "bucket_cap_mb", "static_graph"):
        assert name in change.message


def test_the_wrap_of_a_name_by_itself_leaves_no_line() -> None:
    migrated = check_section("wrap", "model = Net().cuda()\nmodel = DDP(model)", ONE)
    migrated.said("MG101", "model = DDP(model)")


def test_a_conditional_wrap_is_unwrapped_on_both_branches() -> None:
    check_section(
        "wrap",
        """
        model = Net().cuda()
        if args.distributed:
            model = DDP(model, device_ids=[local_rank])
        """,
        ONE,
    )


def test_a_conditional_expression_is_unwrapped() -> None:
    check_section("wrap", "model = Net().cuda()\nmodel = DDP(model) if args.distributed else model", ONE)


def test_twins_of_an_if_become_one() -> None:
    migrated = check_section(
        "wrap",
        """
        model = Net().cuda()
        if torch.cuda.is_available():
            model = DDP(model, device_ids=[local_rank], output_device=local_rank)
        else:
            model = DDP(model)
        """,
        ONE,
    )
    migrated.said("MG101", "model = DDP(model, device_ids")
    migrated.said("MG101", "model = DDP(model)")


def test_the_other_statements_of_a_branch_stay() -> None:
    check_section(
        "wrap",
        """
        model = Net()
        if args.distributed:
            model.cuda()
            args.batch_size = args.batch_size // dist.get_world_size()
            model = DDP(model, device_ids=[local_rank])
        else:
            model = model.cuda()
        """,
        """
        model = Net()
        if args.distributed:
            model.cuda()
            args.batch_size = args.batch_size // dist.get_world_size()
        else:
            model = model.cuda()
        """,
    )


def test_a_data_parallel_branch_is_unwrapped_too() -> None:
    migrated = check_section(
        "wrap",
        """
        model = Net().cuda()
        if args.distributed:
            model = DDP(model, device_ids=[local_rank])
        elif torch.cuda.device_count() > 1:
            model = nn.DataParallel(model)
        """,
        ONE,
    )
    migrated.said("MG102", "model = nn.DataParallel(model)")


def test_a_data_parallel_expression_keeps_the_rest_of_its_line() -> None:
    check_section(
        "wrap",
        """
        model = Net()
        if args.distributed:
            model = DDP(model.cuda())
        else:
            model = torch.nn.DataParallel(model).cuda()
        """,
        """
        model = Net()
        if args.distributed:
            model = model.cuda()
        else:
            model = model.cuda()
        """,
    )


def test_sync_batch_norm_stays() -> None:
    migrated = check_section(
        "wrap",
        """
        model = Net()
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
        model = DDP(model, device_ids=[local_rank])
        """,
        """
        model = Net()
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
        """,
    )
    migrated.silent("MG104")


SYNC = """
def convert_sync_batchnorm(module):
    for name, child in module.named_children():
        setattr(module, name, convert_sync_batchnorm(child))
    return module


def prepared(module):
    return convert_sync_batchnorm(module)
"""


@pytest.mark.parametrize("call", ["convert_sync_batchnorm(model)", "prepared(model)"])
def test_sync_batch_norm_under_a_condition_is_none(call: str) -> None:
    made = "model = nn.Sequential(nn.BatchNorm2d(3), Net())\n"
    migrated = convert(helpers=SYNC, wrap=made + f"if args.amp:\n    model = {call}\nmodel = DDP(model.cuda())")
    migrated.said("MG104", "model = DDP(model", Kind.KEPT)
    convert(helpers=SYNC, wrap=made + f"model = DDP({call})").silent("MG104")


def test_a_compiled_model_is_handed_over_as_it_is() -> None:
    check_section(
        "wrap",
        "model = torch.compile(Net().cuda())\nmodel = DDP(model)",
        "model = torch.compile(Net().cuda())\n",
    )


def test_batch_norm_statistics_are_spoken_of() -> None:
    migrated = convert(
        wrap="model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), Net()).cuda()\nmodel = DDP(model)"
    )
    told = migrated.said("MG104", "model = DDP(model)", Kind.KEPT)
    assert "average with rank 0's, or save, its statistics can differ from rank 0's" in told.reason
    assert "where it takes part in eval mode (frozen, or for a target)" in told.reason


def test_a_layer_that_is_seen_does_not_speak_for_a_model_that_is_not() -> None:
    migrated = convert(
        imports="from zoo import create_model",
        helpers="class Averaged(nn.Module):\n    pass\n",
        wrap="model = create_model(args.output).cuda()\nmodel = DDP(model)",
    )
    migrated.said("MG104", "model = DDP(model)", Kind.KEPT)


PART = """
    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = {made}

        def forward(self, x):
            return self.part(x)
    """


@pytest.mark.parametrize(
    ("made", "speaks"),
    [
        ("timm.create_model(args.output)", True),
        ("nn.Sequential(nn.ReLU(), torchvision.models.efficientnet_b0())", True),
        ("torchvision.transforms.Resize(32)", False),
        ("AutoModel.from_pretrained(args.output)", False),
    ],
)
def test_a_part_from_a_package_of_models_may_have_batch_norm(made: str, speaks: bool) -> None:
    migrated = convert(
        imports="import timm\nimport torchvision\nfrom transformers import AutoModel",
        helpers=PART.format(made=made),
        wrap="model = DDP(Probe().cuda())",
    )
    if speaks:
        assert migrated.said("MG104", "model = DDP(", Kind.KEPT).message.startswith("if the model, which is not seen")
    else:
        migrated.silent("MG104")


def test_the_function_of_batch_norm_has_statistics_too() -> None:
    helpers = PART.format(made="nn.Linear(32, 10)").replace(
        "self.part(x)", "F.batch_norm(x, self.mean, self.var, training=self.training)"
    )
    convert(helpers=helpers, wrap="model = DDP(Probe().cuda())").said("MG104", "model = DDP(", Kind.KEPT)


def test_a_model_without_batch_norm_has_nothing_to_say_about_it() -> None:
    convert().silent("MG104")


def test_buffers_that_were_not_broadcast_have_nothing_to_say() -> None:
    migrated = convert(wrap="model = DDP(nn.Sequential(nn.BatchNorm1d(32), Net()).cuda(), broadcast_buffers=False)")
    migrated.silent("MG104")


def test_a_mixed_precision_policy_is_left_to_the_person() -> None:
    migrated = convert(
        imports="from torch.distributed.fsdp import MixedPrecision",
        wrap="model = DDP(Net().cuda(), mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))",
    )
    migrated.said("MG106", "mixed_precision=", Kind.TODO)
    assert "# TODO(dsmigrate MG106)" in migrated.section("wrap")


def test_comments_around_the_wrap_stay() -> None:
    check_section(
        "wrap",
        """
        model = Net().cuda()  # the small one
        # one replica per GPU
        model = DDP(model, device_ids=[local_rank])
        """,
        """
        model = Net().cuda()  # the small one
        # one replica per GPU
        """,
    )


@pytest.mark.parametrize(("value", "said"), [("False", True), ("args.amp", True), ("True", False)])
def test_summed_gradients_are_left_to_the_person(value: str, said: bool) -> None:
    migrated = convert(
        imports="from apex.parallel import DistributedDataParallel as ApexDDP",
        wrap=f"model = ApexDDP(Net().cuda(), gradient_average={value})",
    )
    assert any(change.code == "MG116" and change.kind is Kind.TODO for change in migrated.changes) is said


@pytest.mark.parametrize(
    ("made", "speaks"),
    [
        ("AutoModelForCausalLM.from_pretrained(args.output)", False),
        ("AutoModelForImageClassification.from_pretrained(args.output)", True),
        ("make(AutoModelForCausalLM)", True),
    ],
)
def test_a_model_for_text_of_transformers_has_no_batch_norm(made: str, speaks: bool) -> None:
    source = script(
        imports="from somewhere import make\nfrom transformers import AutoModelForCausalLM\n"
        "from transformers import AutoModelForImageClassification",
        wrap=f"net = {made}\nnet = net.cuda()\nmodel = DDP(net)",
    )
    start, end = source.index("class Net("), source.index("\n\n\n", source.index("class Net("))
    migrated = migrate(source[:start] + source[end:])
    assert any(change.code == "MG104" for change in migrated.changes) is speaks


def test_dropped_arguments_are_named_without_their_commas() -> None:
    migrated = convert(wrap="more = {}\nmodel = DDP(Net().cuda(), static_graph=False, delay=3, **more,)\n")
    message = migrated.said("MG103", "model = DDP(", Kind.CONVERTED).message
    assert message.startswith("dropped: static_graph")
    assert message.endswith("delay=3, **more")
