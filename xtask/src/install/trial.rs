//! A trial of an installation: programs in C are built with it, as the guide says, and run.

use std::process::Command;

use super::{InstallOptions, Places};
use crate::workspace::Workspace;

/// Programs of `examples/c`.
pub(super) const EXAMPLES: [&str; 5] = ["control", "pipeline", "admission", "tree", "graph"];

/// Builds programs as the guide says, shared and static, and runs them, each for a minute at most.
/// The programs go as soon as they are through.
const TRIAL: &str = r#"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
test "$(pkg-config --modversion punctual)" = "$1"
# The command, and a program that it starts by name.
test "$("$3/punctual" --version)" = "punctual $1"
all=$4
test -z "$all" || "$3/punctual" conform --builtin edf --histories 10
version=$1 sources=$2
shift 4
for name; do
    cc -o "$folder/$name" "$sources/$name.c" $(pkg-config --cflags --libs punctual)
    # A control loop that was late exits with 1: this machine may have taken its CPU away.
    timeout 60 "$folder/$name" || test "$name $?" = "control 1"
    echo "$name: shared"
    test -n "$all" || continue
    cc -o "$folder/static" "$sources/$name.c" $(pkg-config --cflags --libs punctual-static)
    # By itself: the loader is not told where the shared library is.
    LD_LIBRARY_PATH= timeout 60 "$folder/static" || test "$name $?" = "control 1"
    # Under a prefix where the loader looks by itself, that it ran shows nothing.
    if command -v readelf > /dev/null; then
        asks_for_us() { LC_ALL=C readelf -d "$1" | grep -q 'NEEDED.*libpunctual'; }
        asks_for_us "$folder/$name" || { echo "$name is not linked shared" >&2; exit 1; }
        if asks_for_us "$folder/static"; then echo "$name is not linked static" >&2; exit 1; fi
        echo "$name: static"
    else
        echo "$name: static, unless the loader found the shared library (there is no \`readelf\`)"
    fi
done
if command -v cmake > /dev/null; then
    mkdir "$folder/project"
    cat > "$folder/project/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.10)
project(trial C)
find_package(punctual $version REQUIRED)
add_executable(shared $sources/admission.c)
target_link_libraries(shared punctual::punctual)
if(TARGET punctual::static)
    add_executable(static $sources/admission.c)
    target_link_libraries(static punctual::static)
endif()
END
    cmake -S "$folder/project" -B "$folder/made"
    cmake --build "$folder/made"
    timeout 60 "$folder/made/shared"
    test -z "$all" || LD_LIBRARY_PATH= timeout 60 "$folder/made/static"
    echo "admission: by CMake"
else
    echo "CMake's package was not tried (there is no \`cmake\`)"
fi
"#;

pub(super) fn trial(
    workspace: &Workspace,
    options: &InstallOptions,
    names: &[&str],
) -> Result<Command, String> {
    let places = Places::of(options)?;
    let Places {
        prefix,
        library,
        bin,
        ..
    } = places;
    let mut command = Command::new("sh");
    command.args(["-euc", TRIAL, "sh", env!("CARGO_PKG_VERSION")]);
    command
        .arg(workspace.root.join("examples/c"))
        .arg(bin)
        .arg(if options.all { "all" } else { "" })
        .args(names);
    command.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
    command.env("CMAKE_PREFIX_PATH", prefix);
    command.env("LD_LIBRARY_PATH", library);
    Ok(command)
}
