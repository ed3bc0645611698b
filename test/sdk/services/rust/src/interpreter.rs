//! Carries out programs of commands, with the SDK's own futures.

use std::collections::HashMap;

use restate_sdk::prelude::*;

use crate::awaits::{Command, Outcome, Program};
use crate::pending::{Pending, begin};
use crate::recorder::note;

pub struct Interpreter;

#[restate_sdk::object(name = "RustInterpreter")]
impl Interpreter {
    /// Returns the outcome of each command, in order.
    #[handler]
    async fn run(&self, ctx: ObjectContext<'_>, Json(program): Json<Program>) -> HandlerResult<Json<Vec<Outcome>>> {
        let mut kept = HashMap::new();
        let mut outcomes = Vec::new();
        for command in program.commands {
            outcomes.push(carry_out(&ctx, &program.id, command, &mut kept).await?);
        }
        Ok(Json(outcomes))
    }
}

/// What was started and not yet awaited, by name.
pub type Kept<'ctx> = HashMap<String, Pending<'ctx>>;

async fn carry_out<'ctx>(
    ctx: &ObjectContext<'ctx>,
    id: &str,
    command: Command,
    kept: &mut Kept<'ctx>,
) -> Result<Outcome, TerminalError> {
    match command.what.as_str() {
        "start" => {
            let pending = begin(ctx, id, only(command.of)?, kept).await?;
            kept.insert(command.name, pending);
        }
        "await" => return begin(ctx, id, only(command.of)?, kept).await?.end().await,
        "id" => {
            let own = ctx.invocation_id();
            let name = format!("{id}-{}", command.name);
            ctx.run(|| note(&name, own.to_owned())).name("id").await?;
        }
        "set" => ctx.set(&command.name, command.value),
        "get" => return Ok(Ok(ctx.get::<String>(&command.name).await?.unwrap_or_default()).into()),
        "fail" => return Err(TerminalError::new_with_code(command.code, command.message)),
        _ => return begin(ctx, id, command, kept).await?.end().await,
    }
    Ok(Outcome::default())
}

/// Takes the one command of a list.
fn only(of: Vec<Command>) -> Result<Command, TerminalError> {
    of.into_iter().next().ok_or_else(|| TerminalError::new("a command is missing in of"))
}
