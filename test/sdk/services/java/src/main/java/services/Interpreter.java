package services;

import dev.restate.sdk.Awakeable;
import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.TerminalException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import services.Payloads.Command;
import services.Payloads.Outcome;
import services.Payloads.Program;

/** Carries out programs, to combine awaits in any way. */
@VirtualObject
@Name("JavaInterpreter")
public class Interpreter {
  @Handler
  public List<Outcome> run(ObjectContext ctx, Program in) {
    var run = new Run(ctx, in.id(), new HashMap<>());
    List<Outcome> outcomes = new ArrayList<>();
    in.commands().forEach(c -> outcomes.add(run.command(c)));
    return outcomes;
  }

  /**
   * One run of a program.
   *
   * @param kept what start began, by name
   */
  private record Run(ObjectContext ctx, String id, Map<String, Node> kept) {
    /** Carries out one command and returns what it came to. */
    Outcome command(Command c) {
      switch (c.action()) {
        case "start" -> kept.put(c.name(), begin(c.of().get(0)));
        case "id" -> tell("id", c, ctx.request().invocationId().toString());
        case "set" -> ctx.set(Store.text(c.name()), c.value());
        case "get" -> {
          return ctx.get(Store.text(c.name())).map(Outcome::value).orElse(Outcome.EMPTY);
        }
        case "fail" -> throw new TerminalException(c.code(), c.message());
        case "await" -> {
          return command(c.of().get(0));
        }
        default -> {
          return begin(c).await();
        }
      }
      return Outcome.EMPTY;
    }

    /** Makes what the command awaits, without awaiting it. */
    private Node begin(Command c) {
      return switch (c.action()) {
        case "wait" -> kept.get(c.name());
        case "sleep" -> Node.of(ctx.timer(Duration.ofMillis(c.millis())), v -> "slept");
        case "run" -> Node.of(ctx.runAsync("run", String.class, () -> step(c)), Run::text);
        case "awakeable" -> {
          Awakeable<String> awakeable = ctx.awakeable(String.class);
          tell("publish", c, awakeable.id());
          yield Node.of(awakeable, Run::text);
        }
        case "call" -> Node.of(Requests.start(ctx, c.call()), Run::text);
        case "all", "settled", "any", "first" ->
            Node.combine(c.action(), c.of().stream().map(this::begin).toList());
        case "signal" -> throw new TerminalException(501, "the SDK has no named signals");
        default -> throw new TerminalException("unknown command " + c.action());
      };
    }

    private void tell(String step, Command c, String value) {
      Recorder.tell(ctx, step, id + "-" + c.name(), value);
    }

    /** Is a step that succeeds or fails as the command says. */
    private static String step(Command c) {
      if (c.code() != 0) {
        throw new TerminalException(c.code(), c.message());
      }
      return c.value();
    }

    private static String text(Object value) {
      return String.valueOf(value);
    }
  }
}
