//! The parts of the load tool that tests also use: above all a model server that imitates Anthropic and OpenAI.
//!
//! Flow: the last `plan:` words of a request say what to answer, and the number of assistant messages gives the step.
//! So the server stores no conversation, and its cost does not grow with history.

pub mod model_server;
