"""Names the platform of the wheel: programs that need nothing of the host but a Linux on x86-64."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORM = "manylinux_2_17_x86_64.musllinux_1_1_x86_64"


class Hook(BuildHookInterface):
    def initialize(self, version, build_data):  # noqa: ARG002
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{PLATFORM}"
