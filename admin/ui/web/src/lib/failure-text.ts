// The parts of a failure: the error, what it adds in further lines, and a stack trace.

/** Lines with which the stack traces of the SDKs' languages begin. */
const traceLine = /^\s*(?:at\s+\S.*[:(]|Traceback \(most recent call last\):|File "[^"]*", line \d|goroutine \d+|stack backtrace:|\d+:\s+0x[0-9a-f]+|Caused by: \S+(?:Exception|Error)\b)/

/** More lines than this are folded like a stack trace. */
const openLines = 12

export interface FailureText {
  message: string
  /** Further lines of the error that are not a stack trace, such as the step that differs. */
  details: string
  trace: string
}

export function failureText(text: string): FailureText {
  const [message, ...rest] = text.split('\n')
  const at = rest.findIndex((line) => traceLine.test(line))
  const end = at >= 0 ? at : rest.length > openLines ? 0 : rest.length
  const join = (lines: string[]): string => lines.join('\n').replace(/^(?:\s*\n)+|\s+$/g, '')
  return { message: message!, details: join(rest.slice(0, end)), trace: join(rest.slice(end)) }
}
