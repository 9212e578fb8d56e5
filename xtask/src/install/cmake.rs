//! The package that CMake finds: `find_package(punctual)`.

/// The names of its files, in one folder of their own.
pub(super) const FILES: [&str; 2] = ["punctual-config.cmake", "punctual-config-version.cmake"];

/// The targets `punctual::punctual` and, if that is installed, `punctual::static`. It finds the
/// rest from its own place (`lib/cmake/punctual`), so the folder above `lib` can be moved.
const CONFIG: &str = r#"get_filename_component(_punctual_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET punctual::punctual)
    add_library(punctual::punctual SHARED IMPORTED)
    set_target_properties(punctual::punctual PROPERTIES
        IMPORTED_LOCATION "${_punctual_prefix}/lib/libpunctual.so"
        IMPORTED_SONAME "@SONAME@"
        INTERFACE_INCLUDE_DIRECTORIES "${_punctual_prefix}/include")
endif()
if(EXISTS "${_punctual_prefix}/lib/libpunctual.a" AND NOT TARGET punctual::static)
    add_library(punctual::static STATIC IMPORTED)
    set_target_properties(punctual::static PROPERTIES
        IMPORTED_LOCATION "${_punctual_prefix}/lib/libpunctual.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_punctual_prefix}/include"
        INTERFACE_LINK_LIBRARIES "@BESIDE@")
endif()
unset(_punctual_prefix)
"#;

/// A program that asks for an earlier version of the same first two numbers can have this one.
const VERSION: &str = r#"set(PACKAGE_VERSION "@VERSION@")
if("${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" VERSION_EQUAL "@SERIES@"
   AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
endif()
"#;

/// The texts of [`FILES`].
pub(super) fn texts(version: &str, soname: &str, beside: &str) -> [String; 2] {
    let mut numbers = version.split('.');
    let series = [numbers.next(), numbers.next()].map(|number| number.unwrap_or("0"));
    let beside: Vec<&str> = beside.split_whitespace().collect();
    let config = CONFIG.replace("@SONAME@", soname);
    let config = config.replace("@BESIDE@", &beside.join(";"));
    let of_version = VERSION.replace("@VERSION@", version);
    [config, of_version.replace("@SERIES@", &series.join("."))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_names_no_place_and_a_version_of_its_series() {
        let [config, version] = texts("0.2.7", "libp.so.0", "-lm -ldl");
        assert!(config.contains("IMPORTED_SONAME \"libp.so.0\""));
        assert!(config.contains("INTERFACE_LINK_LIBRARIES \"-lm;-ldl\""));
        assert!(version.contains("PACKAGE_VERSION \"0.2.7\"") && version.contains("\"0.2\""));
        assert!(![config, version].iter().any(|text| text.contains('@')));
    }
}
