package services;

import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.StateKey;
import dev.restate.sdk.common.TerminalException;
import services.Payloads.Completion;

/** Keeps the id of an awakeable until it is told to complete it. */
@VirtualObject
@Name("JavaHolder")
public class Holder {
  private static final StateKey<String> ID = Store.text("id");

  @Handler
  public void hold(ObjectContext ctx, String id) {
    ctx.set(ID, id);
  }

  @Handler
  public boolean has(ObjectContext ctx) {
    return ctx.get(ID).isPresent();
  }

  @Handler
  public void complete(ObjectContext ctx, Completion in) {
    String id = ctx.get(ID).orElseThrow(() -> new TerminalException(404, "nothing held"));
    Awakeables.finish(ctx, id, in);
    ctx.clear(ID);
  }
}
