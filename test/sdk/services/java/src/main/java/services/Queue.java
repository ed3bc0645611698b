package services;

import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.SharedObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Shared;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.StateKey;
import dev.restate.serde.TypeRef;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import services.Payloads.Step;

/** The order of exclusive handlers, and shared ones beside them. */
@VirtualObject
@Name("JavaQueue")
public class Queue {
  private static final StateKey<List<String>> VALUES =
      StateKey.of("values", new TypeRef<List<String>>() {});

  @Handler
  public int hold(ObjectContext ctx, Step in) {
    return Steps.recorded(ctx, in.id(), in.gate());
  }

  @Handler
  public int append(ObjectContext ctx, String value) {
    List<String> values = new ArrayList<>(ctx.get(VALUES).orElse(List.of()));
    ctx.sleep(Duration.ofMillis(1));
    values.add(value);
    ctx.set(VALUES, values);
    return values.size();
  }

  @Handler
  @Shared
  public List<String> list(SharedObjectContext ctx) {
    return ctx.get(VALUES).orElse(List.of());
  }
}
