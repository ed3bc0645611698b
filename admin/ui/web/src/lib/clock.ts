// The time of the server: what is shown are times of the server, and the clock of the browser can be wrong.

let offset = 0

/** Differences below this many milliseconds are not corrected: responses say the time in whole seconds. */
const tolerated = 2000

/** Milliseconds since 1970 at the server. */
export const serverNow = (): number => Date.now() + offset

/** Learns the time of the server from the Date header of a response to a request that was sent and answered at these times. */
export function noteServerTime(date: string | null, sent: number, answered: number): void {
  const at = Date.parse(date ?? '')
  if (Number.isNaN(at) || answered - sent > tolerated || answered < sent) return
  const measured = at + 500 - (sent + answered) / 2
  if (Math.abs(measured - offset) > tolerated) offset = Math.abs(measured) > tolerated ? measured : 0
}
