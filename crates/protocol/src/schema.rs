//! The schemas of types whose JSON serde's attributes do not describe.

use crate::selector::Selector;
use crate::summary::RunState;
use crate::vocabulary::Labels;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

impl PartialSchema for RunState {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Self::all().map(Self::as_str)))
            .description(Some("The derived state of a session."))
            .into()
    }
}

impl ToSchema for RunState {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("RunState")
    }
}

impl PartialSchema for Selector {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::String))
            .item(Labels::schema())
            .description(Some(
                "Conditions on labels: a text such as `team=infra, tier in (a, b), !urgent`, or a map of required labels.",
            ))
            .into()
    }
}

impl ToSchema for Selector {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Selector")
    }
}

/// Where an image's bytes are: in `data` or in `blob`.
// Generators of clients cannot read a choice inside of a type that has more fields.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema counts")]
pub(crate) struct ImagePlace {
    /// Base64.
    data: Option<String>,
    /// The name of a blob.
    blob: Option<String>,
}
