"""Recipe of Conan 2: `conan create .` makes a package of the library alone, which needs nothing but the C library.

With `-o "exphil/*:program=True"` the package has the program too, which reads JSON with jansson.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rm, rmdir
from conan.tools.gnu import PkgConfigDeps


class Exphil(ConanFile):
    name = "exphil"
    description = "Trains and plays policies for 60 Hz games inside the host's process"
    license = ("MIT", "BSD-3-Clause")
    topics = ("machine-learning", "games", "imitation-learning", "reinforcement-learning")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "program": [True, False]}
    default_options = {"shared": False, "program": False}
    exports_sources = (
        "CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tools/manual",
        "bench/*", "bindings/*", "cli/*", "cmake/*", "doc/*", "examples/*", "include/*", "lib/*", "mpi/*", "policies/*",
        "third_party/*",
    )
    test_package_folder = "tests/conan"

    def set_version(self):
        # The header is the only place that knows the version.
        header = (Path(self.recipe_folder) / "include/exphil/exphil.h").read_text(encoding="utf-8")
        self.version = ".".join(re.findall(r"^#define EXPHIL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))

    def configure(self):
        # C alone.
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def requirements(self):
        if self.options.program:
            self.requires("jansson/2.14", visible=False)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["EXPHIL_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["EXPHIL_TOOLS"] = bool(self.options.program)
        toolchain.cache_variables["EXPHIL_TESTS"] = False
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        copy(self, "LICENSE", f"{self.source_folder}/third_party/zstd", f"{self.package_folder}/licenses/zstd")
        if self.options.shared:
            rm(self, "libexphil.a", f"{self.package_folder}/lib")
        # Conan describes the package to CMake and pkg-config by itself.
        for folder in ("share", "lib/cmake", "lib/pkgconfig"):
            rmdir(self, f"{self.package_folder}/{folder}")

    def package_info(self):
        self.cpp_info.libs = ["exphil"]
        self.cpp_info.set_property("cmake_target_name", "exphil::exphil")
        self.cpp_info.set_property("pkg_config_name", "exphil")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m", "pthread", "dl"]
