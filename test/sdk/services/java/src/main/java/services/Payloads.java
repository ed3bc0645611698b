package services;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonInclude.Include;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

/**
 * The payloads of the test services; see the contract of the suite for their meaning. A field that
 * is missing gets its zero value, so no field but the input of a call is ever null.
 */
public final class Payloads {
  private Payloads() {}

  private static String text(String s) {
    return s == null ? "" : s;
  }

  private static <T> List<T> list(List<T> l) {
    return l == null ? List.of() : l;
  }

  private static Map<String, String> map(Map<String, String> m) {
    return m == null ? Map.of() : m;
  }

  /** What Echo returns unchanged. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Message(String text, long number, Map<String, String> tags) {}

  /** What the handlers that run steps read; each reads what it needs. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Step(
      String id, int n, int fail, int code, String message, long millis, String gate) {
    public Step {
      id = text(id);
      message = text(message);
      gate = text(gate);
    }
  }

  /** A terminal error that a handler caught; the SDK does not tell its metadata. */
  public record Failure(int code, String message) {
    static final Failure NONE = new Failure(0, "");
  }

  /** What one attempt drew from the deterministic source. */
  public record Random(double number, String uuid) {}

  /** An invocation to make. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Call(
      String service,
      String key,
      String handler,
      Object input,
      long delayMillis,
      String idempotencyKey,
      Map<String, String> headers) {
    public Call {
      key = text(key);
      idempotencyKey = text(idempotencyKey);
      headers = map(headers);
    }
  }

  /** Sleeps that are started at once. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Race(List<Long> millis) {
    public Race {
      millis = list(millis);
    }
  }

  /** A call that is given up after some time. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Timeout(Call call, long millis) {}

  /** One state operation. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Op(String op, String key, String value) {
    public Op {
      key = text(key);
      value = text(value);
    }
  }

  /** What a state operation read. */
  @JsonInclude(Include.NON_NULL)
  public record OpResult(boolean present, String value, List<String> keys) {
    static final OpResult ABSENT = new OpResult(false, null, null);

    static OpResult of(String value) {
      return new OpResult(true, value, null);
    }

    static OpResult keys(List<String> keys) {
      return new OpResult(false, null, keys);
    }
  }

  /** What something that was awaited came to. */
  @JsonInclude(Include.NON_DEFAULT)
  public record Outcome(String value, int code, String message, int index, List<Outcome> of) {
    static final Outcome EMPTY = new Outcome(null, 0, null, 0, null);

    static Outcome value(String value) {
      return new Outcome(value, 0, null, 0, null);
    }

    static Outcome error(int code, String message) {
      return new Outcome(null, code, message, 0, null);
    }

    static Outcome all(List<Outcome> of) {
      return new Outcome(null, 0, null, 0, of);
    }

    static Outcome one(int index, Outcome of) {
      return new Outcome(null, 0, null, index, List.of(of));
    }

    Outcome at(int index) {
      return new Outcome(value, code, message, index, of);
    }
  }

  /** Awakeables to create. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Await(String id, int n) {
    public Await {
      id = text(id);
    }
  }

  /** How to complete an awakeable or a promise. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Completion(String awakeable, String promise, String value, String reject) {
    public Completion {
      awakeable = text(awakeable);
      promise = text(promise);
      value = text(value);
      reject = text(reject);
    }
  }

  /** The object that is to complete an awakeable. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Delegate(String holder, String key) {
    public Delegate {
      key = text(key);
    }
  }

  /** The input of a workflow. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Flow(String id, List<String> promises, String text) {
    public Flow {
      id = Payloads.text(id);
      promises = list(promises);
      text = Payloads.text(text);
    }
  }

  /** What to be blocked in until cancelled. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Block(String id, String in, String child, @JsonProperty("catch") boolean caught) {
    public Block {
      id = text(id);
      in = text(in);
      child = text(child);
    }
  }

  /** A node of a tree of invocations. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Tree(String id, int depth, int width, boolean send) {
    public Tree {
      id = text(id);
    }

    Tree below() {
      return new Tree(id, depth - 1, width, send);
    }
  }

  /** What a handler does on its attempts. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Drift(String id, String first, String second, int heal) {
    public Drift {
      id = text(id);
      first = text(first);
      second = text(second);
    }
  }

  /** What to answer, and what before that. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Say(String value, String id, String gate, long millis, int code, String message) {
    public Say {
      value = text(value);
      id = text(id);
      gate = text(gate);
      message = text(message);
    }
  }

  /** The versions that one invocation ran in. */
  public record Versions(String before, String after) {}

  /** Commands to carry out in order. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Program(String id, List<Command> commands) {
    public Program {
      id = text(id);
      commands = list(commands);
    }
  }

  /** One command of a program; each reads what it needs. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Command(
      @JsonProperty("do") String action,
      String name,
      String value,
      long millis,
      int code,
      String message,
      Call call,
      List<Command> of) {
    public Command {
      action = text(action);
      name = text(name);
      value = text(value);
      message = text(message);
      of = list(of);
    }
  }
}
