package services;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.restate.common.Slice;
import dev.restate.serde.Serde;
import java.io.IOException;
import java.io.UncheckedIOException;

/** Any JSON value, as maps, lists, texts and numbers. No body at all is null. */
final class AnyJson implements Serde<Object> {
  static final AnyJson SERDE = new AnyJson();

  private static final ObjectMapper MAPPER = new ObjectMapper();

  private AnyJson() {}

  @Override
  public Slice serialize(Object value) {
    try {
      return Slice.wrap(MAPPER.writeValueAsBytes(value));
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public Object deserialize(Slice body) {
    if (body.readableBytes() == 0) {
      return null;
    }
    try {
      return MAPPER.readValue(body.toByteArray(), Object.class);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public String contentType() {
    return "application/json";
  }
}
