use super::*;
use FailureClass::{Auth, RateLimited};
use agentd_protocol::CredentialHealth;
use agentd_settings::SchedulerConfig;

const T0: Timestamp = Timestamp(100_000_000_000);

fn credentials(names: &[&str], permits: u32) -> Credentials {
    let mut credentials = Credentials::new(Cooldowns::of(&SchedulerConfig::default()));
    credentials.configure(names.iter().map(|&name| name.to_owned()).collect(), T0);
    credentials.resize(permits, &RatesConfig::default(), T0);
    credentials
}

fn call(credential: Index, number: u64) -> Call<'static> {
    Call {
        credential,
        model: "m",
        number,
        next: number + 1,
    }
}

fn choose(credentials: &Credentials, asked: Option<&str>) -> Option<String> {
    let chosen = credentials.choose("m", asked, &Charge::default(), T0).ok()?;
    credentials.name(chosen).map(str::to_owned)
}

fn goes(credentials: &mut Credentials, credential: Index, number: u64) {
    credentials.went(&call(credential, number), &Charge::default(), T0);
}

fn comes_back(credentials: &mut Credentials, credential: Index, number: u64) {
    let nothing = Charge::default();
    credentials.came_back(
        &call(credential, number),
        (&nothing, &nothing),
        &Rates::default(),
        T0,
    );
}

#[test]
fn the_asked_one_is_taken_while_it_is_well() {
    let mut credentials = credentials(&["a", "b", "c"], 8);
    goes(&mut credentials, 1, 1);
    assert_eq!(choose(&credentials, Some("b")).as_deref(), Some("b"));
    comes_back(&mut credentials, 1, 1);
    credentials.failed(&call(1, 1), Auth, None, T0);
    assert_eq!(choose(&credentials, Some("b")).as_deref(), Some("a"));
    assert_eq!(credentials.other(1, "m", T0), Some("a"));
    let other_model = credentials.choose("other", Some("b"), &Charge::default(), T0);
    assert_eq!(other_model, Ok(1), "health is counted by model");
}

#[test]
fn else_the_one_with_the_fewest_calls_and_of_these_the_one_that_rested_longest() {
    let mut credentials = credentials(&["a", "b", "c"], 8);
    for (credential, number) in [(2, 1), (0, 2), (1, 3), (0, 4)] {
        goes(&mut credentials, credential, number);
    }
    assert_eq!(choose(&credentials, None).as_deref(), Some("c"));
    comes_back(&mut credentials, 0, 2);
    comes_back(&mut credentials, 0, 4);
    assert_eq!(choose(&credentials, None).as_deref(), Some("a"));
    assert_eq!(choose(&credentials, Some("unknown")).as_deref(), Some("a"));
}

#[test]
fn none_is_well_until_the_first_is_well_again() {
    let mut credentials = credentials(&["a", "b"], 8);
    goes(&mut credentials, 0, 1);
    goes(&mut credentials, 1, 2);
    credentials.failed(&call(0, 1), RateLimited, Some(9_000), T0);
    assert_eq!(credentials.closed("m", T0), None);
    credentials.failed(&call(1, 2), Auth, None, T0);
    assert_eq!(
        credentials.closed("m", T0),
        Some((T0.plus_ms(9_000), RateLimited))
    );
    let shut = credentials.choose("m", None, &Charge::default(), T0);
    assert_eq!(
        shut,
        Err(Shut {
            opens: Some(T0.plus_ms(9_000))
        })
    );
    let told: Vec<_> = credentials
        .told(T0)
        .into_iter()
        .map(|(_, status)| (status.name, status.health, status.until, status.class))
        .collect();
    let cooling = |name: &str, ms, class| {
        let until = Some(T0.plus_ms(ms));
        (name.to_owned(), CredentialHealth::Cooling, until, Some(class))
    };
    assert_eq!(
        told,
        [cooling("a", 9_000, RateLimited), cooling("b", 60_000, Auth)]
    );
}

#[test]
fn a_rate_limit_halves_what_runs_once_and_answers_bring_it_back() {
    let mut credentials = credentials(&[], 64);
    for number in 1..=40 {
        goes(&mut credentials, 0, number);
    }
    for number in 1..=40 {
        comes_back(&mut credentials, 0, number);
        let failed = Call {
            next: 41,
            ..call(0, number)
        };
        credentials.failed(&failed, RateLimited, Some(1), T0);
    }
    assert_eq!(credentials.slots[0].window.size(), 20);
    // Other nodes need the permits for a while.
    credentials.slots[0].window.resize(8);
    assert_eq!(credentials.slots[0].window.size(), 8);
    credentials.slots[0].window.resize(64);
    assert_eq!(credentials.slots[0].window.size(), 20);
    for number in 41..=60 {
        credentials.answered(&call(0, number));
    }
    assert_eq!(credentials.slots[0].window.size(), 21);
    for number in 61..=2_000 {
        credentials.answered(&call(0, number));
    }
    assert_eq!(credentials.slots[0].window.size(), 64);
}

#[test]
fn new_names_and_keys_count_at_once_and_calls_of_a_removed_name_still_come_back() {
    let mut credentials = credentials(&["a", "b"], 8);
    goes(&mut credentials, 0, 1);
    credentials.failed(&call(1, 2), Auth, None, T0);
    let now = ["b", "c"].map(str::to_owned).to_vec();
    credentials.configure(now, T0);
    credentials.resize(1, &RatesConfig::default(), T0);
    assert_eq!(
        choose(&credentials, Some("a")).as_deref(),
        Some("b"),
        "its key may be another"
    );
    goes(&mut credentials, 1, 3);
    assert_eq!(choose(&credentials, None).as_deref(), Some("c"));
    comes_back(&mut credentials, 0, 1);
    credentials.configure(Vec::new(), T0);
    assert_eq!(choose(&credentials, None), None, "the one without a name");
    assert_eq!(credentials.choose("m", None, &Charge::default(), T0), Ok(3));
}
