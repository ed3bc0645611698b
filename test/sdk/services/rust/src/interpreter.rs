//! Carries out programs of commands, with the SDK's own futures.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use restate_sdk::context::DurableFuture;
use restate_sdk::prelude::*;

use crate::awaits::{Command, Outcome, Program};
use crate::caller::request;
use crate::nodes::{Combinator, Nodes};
use crate::recorder::note;

pub struct Interpreter;

#[restate_sdk::object(name = "RustInterpreter")]
impl Interpreter {
    /// Returns the outcome of each command, in order.
    #[handler]
    async fn run(&self, ctx: ObjectContext<'_>, Json(program): Json<Program>) -> HandlerResult<Json<Vec<Outcome>>> {
        let mut run = Run { ctx: &ctx, id: &program.id, nodes: Nodes::default(), kept: HashMap::new() };
        let mut outcomes = Vec::with_capacity(program.commands.len());
        for command in program.commands {
            outcomes.push(run.carry_out(command).await?);
        }
        Ok(Json(outcomes))
    }
}

/// The number of a node, once everything it needs was begun.
type Begun<'a> = Pin<Box<dyn Future<Output = Result<usize, TerminalError>> + Send + 'a>>;

/// One run of a program.
struct Run<'a, 'ctx> {
    ctx: &'a ObjectContext<'ctx>,
    id: &'a str,
    nodes: Nodes<'ctx>,
    kept: HashMap<String, usize>, // what start began
}

impl Run<'_, '_> {
    async fn carry_out(&mut self, command: Command) -> Result<Outcome, TerminalError> {
        match command.what.as_str() {
            "start" => {
                let node = self.begin(only(command.of)?).await?;
                self.kept.insert(command.name, node);
            }
            "await" => return self.end(only(command.of)?).await,
            "id" => {
                let name = format!("{}-{}", self.id, command.name);
                let own = self.ctx.invocation_id().to_owned();
                self.ctx.run(|| note(name, own)).name("id").await?;
            }
            "set" => self.ctx.set(&command.name, command.value),
            "get" => return Ok(Ok(self.ctx.get::<String>(&command.name).await?.unwrap_or_default()).into()),
            "fail" => return Err(TerminalError::new_with_code(command.code, command.message)),
            _ => return self.end(command).await,
        }
        Ok(Outcome::default())
    }

    async fn end(&mut self, command: Command) -> Result<Outcome, TerminalError> {
        let node = self.begin(command).await?;
        self.nodes.end(node).await
    }

    /// Begins an awaitable command, or names what was begun before. Boxed, since the
    /// parts of a combinator are begun in the same way.
    fn begin(&mut self, command: Command) -> Begun<'_> {
        Box::pin(async move {
            let combinator = match command.what.as_str() {
                "all" => Combinator::All,
                "settled" => Combinator::Settled,
                "any" => Combinator::Any,
                "first" => Combinator::First,
                "wait" => return self.started(&command.name),
                _ => return self.leaf(command).await,
            };
            let mut parts = Vec::with_capacity(command.of.len());
            for part in command.of {
                parts.push(self.begin(part).await?);
            }
            Ok(self.nodes.combined(combinator, parts))
        })
    }

    fn started(&self, name: &str) -> Result<usize, TerminalError> {
        let node = self.kept.get(name).copied();
        node.ok_or_else(|| TerminalError::new(format!("nothing is kept under {name:?}")))
    }

    async fn leaf(&mut self, command: Command) -> Result<usize, TerminalError> {
        let ctx = self.ctx;
        Ok(match command.what.as_str() {
            "sleep" => {
                let sleep = ctx.sleep(Duration::from_millis(command.millis));
                self.nodes.leaf(Box::pin(sleep.map_ok(|()| "slept".to_owned())))
            }
            "run" => {
                // This SDK runs a step only while it is awaited, alone.
                let result = ctx.run(|| step(command)).name("run").await;
                self.nodes.ended(result.into())
            }
            "awakeable" => {
                let (awakeable, future) = ctx.awakeable::<String>();
                let name = format!("{}-{}", self.id, command.name);
                ctx.run(|| note(name, awakeable)).name("publish").await?;
                self.nodes.leaf(Box::pin(future))
            }
            "signal" => self.nodes.leaf(Box::pin(ctx.signal::<String>(&command.name))),
            "call" => {
                let call = request::<String>(ctx, command.call.unwrap_or_default()).call();
                self.nodes.leaf(Box::pin(call))
            }
            unknown => return Err(TerminalError::new_with_code(501, format!("unknown command {unknown:?}"))),
        })
    }
}

async fn step(command: Command) -> HandlerResult<String> {
    if command.code != 0 {
        return Err(TerminalError::new_with_code(command.code, command.message).into());
    }
    Ok(command.value)
}

/// Takes the one command of a list.
fn only(of: Vec<Command>) -> Result<Command, TerminalError> {
    of.into_iter().next().ok_or_else(|| TerminalError::new("a command is missing in of"))
}
