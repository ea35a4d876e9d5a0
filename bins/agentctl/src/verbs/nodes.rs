//! `nodes` and `node`: the nodes of a fleet, and which sessions they may have.

use crate::cli::{NodeKeyVerb, NodeVerb};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, age, clean};
use agentd_protocol::{FleetNode, NodeKeyParams, PlaceParams, Placing, Timestamp, listed};

impl Row for FleetNode {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("node", 0),
            Column::whole("state", 0),
            Column::whole("sessions", 0),
            Column::whole("load", 1),
            Column::whole("up", 1),
            Column::text("address", 2, 20),
        ];
        if wide {
            columns.extend([Column::whole("version", 3), Column::whole("labels", 4)]);
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let state = if self.alive { self.placing.as_str() } else { "gone" };
        let up = if self.alive {
            age(self.joined_at, now)
        } else {
            String::new()
        };
        let mut cells = vec![
            clean(&self.name).into_owned(),
            state.to_owned(),
            self.sessions.to_string(),
            format!("{}%", self.load / 10),
            up,
            clean(&self.address).into_owned(),
        ];
        if wide {
            cells.extend([clean(&self.version).into_owned(), listed(&self.labels)]);
        }
        cells
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

pub(crate) async fn nodes(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let rows = ctx.connect().await?.nodes().await?;
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}

pub(crate) async fn node(ctx: &mut Ctx, verb: NodeVerb) -> Result<Exit, Failure> {
    let (node, placing, told) = match verb {
        NodeVerb::Drain { node } => (
            node,
            Placing::Draining,
            "drains: its sessions move at their next boundary",
        ),
        NodeVerb::Cordon { node } => (node, Placing::Cordoned, "gets no more sessions"),
        NodeVerb::Uncordon { node } => (node, Placing::Open, "gets sessions again"),
        NodeVerb::Key { verb } => return key(ctx, verb).await,
    };
    let params = PlaceParams { node, placing };
    ctx.connect().await?.place(&params).await?;
    ctx.out.status(&format!("{} {told}", params.node));
    Ok(Exit::OK)
}

async fn key(ctx: &mut Ctx, verb: NodeKeyVerb) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let told = match verb {
        NodeKeyVerb::Rotate => {
            let made = client.rotate_key().await?;
            format!("{} signs with the new key {}", made.node, made.key)
        }
        NodeKeyVerb::Remove { node } => {
            let params = NodeKeyParams { node };
            client.remove_key(&params).await?;
            format!(
                "the keys of {} were removed; change the password of the database, too, if the node was stolen",
                params.node
            )
        }
        NodeKeyVerb::Admit { node } => {
            let params = NodeKeyParams { node };
            client.admit_key(&params).await?;
            format!("{} may join with a new key", params.node)
        }
    };
    ctx.out.status(&told);
    Ok(Exit::OK)
}
