//! The api over the real store and feed; the supervisor and the gate are fakes.

#[cfg(test)]
mod attach;
#[cfg(test)]
mod damaged_tokens;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod people;
#[cfg(test)]
mod relayed;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod transfer;
#[cfg(test)]
mod typed;
#[cfg(test)]
mod watch;
