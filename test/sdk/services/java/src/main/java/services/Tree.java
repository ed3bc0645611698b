package services;

import dev.restate.common.Request;
import dev.restate.common.Target;
import dev.restate.sdk.DurableFuture;
import dev.restate.sdk.ObjectContext;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.VirtualObject;
import dev.restate.sdk.common.TerminalException;
import dev.restate.serde.Serde;
import dev.restate.serde.TypeTag;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Trees of invocations. */
@VirtualObject
@Name("JavaTree")
public class Tree {
  @Handler
  public String ping(ObjectContext ctx) {
    return "pong";
  }

  @Handler
  public void grow(ObjectContext ctx, Payloads.Tree in) throws IOException, InterruptedException {
    Recorder.record(in.id(), ctx.key());
    try {
      await(ctx, in);
    } catch (TerminalException e) {
      Recorder.tell(ctx, "end", in.id() + "-ended", ctx.key());
      throw e;
    }
  }

  /** Starts the children of a node and waits for them; leaves wait for ever. */
  private static void await(ObjectContext ctx, Payloads.Tree in) {
    List<DurableFuture<Void>> calls = new ArrayList<>();
    for (int i = 0; i < in.width() && in.depth() > 0; i++) {
      var child = child(ctx.key() + "." + i, in.below());
      if (in.send()) {
        ctx.send(child);
      } else {
        calls.add(ctx.call(child));
      }
    }
    if (calls.isEmpty()) {
      ctx.awakeable(String.class).await();
    }
    calls.forEach(DurableFuture::await);
  }

  private static Request<Payloads.Tree, Void> child(String key, Payloads.Tree in) {
    return Request.of(
            Target.virtualObject("JavaTree", key, "grow"),
            TypeTag.of(Payloads.Tree.class),
            Serde.VOID,
            in)
        .build();
  }
}
