package services;

import dev.restate.common.Request;
import dev.restate.common.Target;
import dev.restate.sdk.Awakeable;
import dev.restate.sdk.Context;
import dev.restate.sdk.annotation.Handler;
import dev.restate.sdk.annotation.Name;
import dev.restate.sdk.annotation.Service;
import dev.restate.serde.Serde;
import dev.restate.serde.TypeTag;
import java.util.ArrayList;
import java.util.List;
import services.Payloads.Await;
import services.Payloads.Completion;
import services.Payloads.Delegate;
import services.Payloads.Outcome;

/** Awakeables, waited for and completed by handlers. */
@Service
@Name("JavaAwakeables")
public class Awakeables {
  @Handler
  public List<Outcome> await(Context ctx, Await in) {
    List<Awakeable<String>> awakeables = new ArrayList<>();
    for (int i = 0; i < in.n(); i++) {
      awakeables.add(ctx.awakeable(String.class));
    }
    String[] ids = awakeables.stream().map(Awakeable::id).toArray(String[]::new);
    Recorder.tell(ctx, "publish", in.id(), ids);
    return awakeables.stream().map(Results::outcome).toList();
  }

  @Handler
  public void complete(Context ctx, Completion in) {
    finish(ctx, in.awakeable(), in);
  }

  /** Resolves or rejects an awakeable of another invocation. */
  static void finish(Context ctx, String awakeable, Completion how) {
    var handle = ctx.awakeableHandle(awakeable);
    if (how.reject().isEmpty()) {
      handle.resolve(String.class, how.value());
    } else {
      handle.reject(how.reject());
    }
  }

  @Handler
  public String delegate(Context ctx, Delegate in) {
    Awakeable<String> awakeable = ctx.awakeable(String.class);
    var hold = Target.virtualObject(in.holder(), in.key(), "hold");
    ctx.call(Request.of(hold, TypeTag.of(String.class), Serde.VOID, awakeable.id())).await();
    return awakeable.await();
  }
}
