//! Background jobs: their events become inputs of the core, in the order in which they happened.

use crate::error::LoopError;
use crate::shell::Shell;
use agentd_actor_kit::SessionMsg;
use agentd_text::redact_known;
use agentd_tools::{JobEnding, JobNews, Jobs};
use agentd_turn::{Input, JobEnd};
use ractor::ActorRef;

/// The jobs of a loop whose session has started `last` of them so far.
pub(crate) fn keep(me: &ActorRef<SessionMsg>, last: u32) -> Jobs {
    let me = me.clone();
    Jobs::new(last, move |news| {
        // If the loop is gone, its jobs are lost, and the next loop reports that.
        let _ = me.cast(SessionMsg::Job(news));
    })
}

impl Shell {
    /// A job began or ended.
    pub(crate) async fn job_news(&mut self, news: JobNews) -> Result<(), LoopError> {
        self.advance(match news {
            JobNews::Started { job, command } => Input::JobStarted {
                job,
                command: redact_known(&command).into_owned(),
            },
            JobNews::Ended { job, ending } => Input::JobEnded {
                job,
                end: end(ending),
            },
        })
        .await
    }
}

fn end(ending: JobEnding) -> JobEnd {
    match ending {
        JobEnding::Exited {
            exit_code,
            signal,
            stopped,
        } => JobEnd::Exited {
            exit_code,
            signal,
            stopped: stopped.map(str::to_owned),
        },
        JobEnding::Lost(why) => JobEnd::Lost(why),
    }
}
