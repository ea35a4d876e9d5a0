//! The context that every verb gets.

use crate::cli::Global;
use crate::dial::Dial;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Output;
use agentd_client::Client;

/// The output, the environment, and the way to the daemon.
#[derive(Debug)]
pub(crate) struct Ctx {
    pub(crate) out: Output,
    pub(crate) environment: Environment,
    pub(crate) global: Global,
}

impl Ctx {
    pub(crate) const fn new(global: Global, environment: Environment, out: Output) -> Self {
        Self {
            out,
            environment,
            global,
        }
    }

    /// Sends the output from here on to the user's pager, unless `--no-pager`.
    pub(crate) fn page(&mut self) {
        if !self.global.no_pager {
            self.out.page(&self.environment);
        }
    }

    /// Chooses the daemon.
    pub(crate) fn dial(&self) -> Result<Dial, Failure> {
        Dial::choose(&self.global, &self.environment)
    }

    /// Connects to the daemon.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.dial()?.connect().await
    }

    /// Connects to the daemon; starts a local one that is not running.
    pub(crate) async fn connect_or_start(&mut self) -> Result<Client, Failure> {
        let dial = self.dial()?;
        let out = &mut self.out;
        dial.connect_or_start(&self.environment, |text| out.status(text))
            .await
    }
}
