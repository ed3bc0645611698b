package services;

import dev.restate.common.Request;
import dev.restate.common.Target;
import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.serde.TypeTag;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;

/** A handler that does something else on some of its attempts. */
@VirtualObject
@Name("JavaDrift")
public class Drift {
  @Handler
  public int run(ObjectContext ctx, Payloads.Drift in) throws IOException, InterruptedException {
    int n = Recorder.record(in.id(), "attempt");
    act(ctx, n == 1 || n >= in.heal() ? in.first() : in.second());
    if (n < in.heal()) {
      throw new Deliberate("attempt " + n + " is meant to fail");
    }
    return n;
  }

  private static void act(ObjectContext ctx, String what) {
    switch (what) {
      case "sleep" -> ctx.sleep(Duration.ofMillis(1));
      case "run", "other" -> ctx.run(what, () -> {});
      case "set" -> ctx.set(Store.text("k"), "v");
      case "get" -> ctx.get(Store.text("k"));
      case "call" ->
          ctx.call(
                  Request.of(
                      Target.service("JavaUtils", "say"),
                      AnyJson.SERDE,
                      TypeTag.of(String.class),
                      Map.of("value", "x")))
              .await();
      default -> throw new Deliberate("unknown thing to do: " + what);
    }
  }
}
