//! The reference against the published trajectory, and the mode that it leaves out.

use punctual_rosace::{Mode, Targets, csv, reference};

const PUBLISHED: &str = include_str!("../data/rosace-50s.csv");

#[test]
fn the_reference_prints_the_published_trajectory_byte_for_byte() {
    let flown = csv(&reference(Targets::PUBLISHED, 10_000));
    for (number, (flown, published)) in flown.lines().zip(PUBLISHED.lines()).enumerate() {
        assert_eq!(flown, published, "line {}", number + 1);
    }
    assert!(
        flown == PUBLISHED,
        "the lines agree but the files differ in length or line ends"
    );
}

#[test]
fn in_mode_hold_the_aircraft_climbs_to_the_altitude_and_stays_there() {
    let targets = Targets {
        mode: Mode::Hold,
        vz: -2.5,
        h: 10_200.0,
        ..Targets::PUBLISHED
    };
    let five_minutes = reference(targets, 5 * 60 * 200);
    let altitude = |second: usize| five_minutes[second * 200].altitude;
    assert!(
        altitude(30) > 10_020.0,
        "climbing: {} m after 30 s",
        altitude(30)
    );
    for second in 240..300 {
        let off = (altitude(second) - 10_200.0).abs();
        assert!(off < 5.0, "{off} m off after {second} s");
    }
}
