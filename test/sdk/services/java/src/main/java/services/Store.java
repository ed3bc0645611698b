package services;

import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.SharedObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Shared;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.StateKey;
import dev.restate.sdk.common.TerminalException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import services.Payloads.Op;
import services.Payloads.OpResult;

/** State. */
@VirtualObject
@Name("JavaStore")
public class Store {
  @Handler
  public List<OpResult> script(ObjectContext ctx, List<Op> ops)
      throws IOException, InterruptedException {
    List<OpResult> results = new ArrayList<>();
    for (Op op : ops) {
      switch (op.op()) {
        case "set" -> ctx.set(text(op.key()), op.value());
        case "setBytes" ->
            ctx.set(StateKey.bytes(op.key()), op.value().getBytes(StandardCharsets.UTF_8));
        case "clear" -> ctx.clear(text(op.key()));
        case "clearAll" -> ctx.clearAll();
        case "sleep" -> ctx.sleep(Duration.ofMillis(1));
        case "retry" -> Recorder.attempt(op.key(), "attempt", Integer.parseInt(op.value()));
        case "fail" -> throw new TerminalException(422, op.value());
        case "get" -> results.add(get(ctx, op.key()));
        case "getBytes" -> results.add(getBytes(ctx, op.key()));
        case "keys" -> results.add(OpResult.keys(ctx.stateKeys().stream().sorted().toList()));
        default -> throw new TerminalException("unknown operation " + op.op());
      }
    }
    return results;
  }

  @Handler
  @Shared
  public OpResult peek(SharedObjectContext ctx, String key) {
    return get(ctx, key);
  }

  /** Reads a state that holds a JSON string. */
  static OpResult get(SharedObjectContext ctx, String key) {
    return ctx.get(text(key)).map(OpResult::of).orElse(OpResult.ABSENT);
  }

  private static OpResult getBytes(SharedObjectContext ctx, String key) {
    return ctx.get(StateKey.bytes(key))
        .map(bytes -> OpResult.of(new String(bytes, StandardCharsets.UTF_8)))
        .orElse(OpResult.ABSENT);
  }

  /** Names a state that holds a JSON string. */
  static StateKey<String> text(String key) {
    return StateKey.of(key, String.class);
  }
}
