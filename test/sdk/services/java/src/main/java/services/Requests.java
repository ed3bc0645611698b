package services;

import dev.restate.common.Request;
import dev.restate.common.Target;
import dev.restate.sdk.CallDurableFuture;
import dev.restate.sdk.Context;
import services.Payloads.Call;

/** Invocations that the test asks for. */
final class Requests {
  private Requests() {}

  /** Starts the call. */
  static CallDurableFuture<Object> start(Context ctx, Call call) {
    return ctx.call(request(call));
  }

  /** Returns the request that the call describes. */
  static Request<Object, Object> request(Call call) {
    Target target =
        call.key().isEmpty()
            ? Target.service(call.service(), call.handler())
            : Target.virtualObject(call.service(), call.key(), call.handler());
    var request = Request.of(target, AnyJson.SERDE, AnyJson.SERDE, call.input());
    if (!call.headers().isEmpty()) {
      request.headers(call.headers());
    }
    if (!call.idempotencyKey().isEmpty()) {
      request.idempotencyKey(call.idempotencyKey());
    }
    return request.build();
  }
}
