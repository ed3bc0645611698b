// What an invocation waits for, as a chain: each invocation on the way with its status, down to what
// has to happen.

import type { Wait } from '../api/types.ts'
import { href, segment } from '../router.ts'
import { Command, Elapsed, ID, InvocationID, Pill, Status, Time } from '../ui/basic.tsx'
import { Icon, type IconName } from '../ui/icons.tsx'

/** A text of the server: its times are shown like all others. */
export function TimedText({ text }: { text: string }) {
  const parts = text.replaceAll('`', '').split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?: \((?:in [^()]*|[^()]* ago)\))?/)
  // "at in 2h" and "since 6m ago" read badly.
  const words = (part: string, last: boolean): string => (last ? part : part.replace(/ at $/, ' ').replace(/\bsince $/, 'for '))
  return <>{parts.map((part, n) => (n % 2 === 0 ? words(part, n + 1 === parts.length) : /\bsince $/.test(parts[n - 1]!) ? <Elapsed key={n} from={part} /> : <Time key={n} at={part} />))}</>
}

/** Ids of the invocations of a chain. */
export function invocationsOf(waits: readonly Wait[]): string[] {
  const ids = waits.flatMap((w) => [...(w.id?.startsWith('inv_') ? [w.id] : []), ...invocationsOf(w.waiting_for ?? [])])
  return [...new Set(ids)].sort()
}

const icons: Record<string, IconName> = { signal: 'call', awakeable: 'link', sleep: 'clock', promise: 'star', invocation: 'invocations', run: 'play', command: 'jobs', object: 'key', vqueue: 'flow' }

export function WaitChain({ waits }: { waits: readonly Wait[] }) {
  if (waits.length === 0) return null
  return <ul class="waits" aria-label="Waits for">{waits.map((w, n) => <Link key={n} of={w} />)}</ul>
}

function Link({ of: w }: { of: Wait }) {
  return (
    <li>
      <div class="wait">
        <Icon name={icons[w.kind] ?? 'clock'} size={14} />
        <div>
          <p><Subject of={w} />{w.status && <> <Status status={w.status} /></>}{w.cycle && <> <Pill tone="bad">cycle: they wait for each other</Pill></>}</p>
          {w.summary && (w.waiting_for ?? []).length === 0 && <p class="muted"><TimedText text={w.summary} /></p>}
        </div>
      </div>
      <WaitChain waits={w.waiting_for ?? []} />
    </li>
  )
}

/** What it is, in words, with links. */
function Subject({ of: w }: { of: Wait }) {
  switch (w.kind) {
    case 'sleep':
      if (w.until) return <>the end of a sleep, <Time at={w.until} /></>
      break
    case 'invocation':
      if (w.id) return <>the result of {w.target && <a class="strong" href={href(`/invocations/${segment(w.id)}`)}><bdi>{w.target}</bdi></a>} <InvocationID id={w.id} /></>
      break
    case 'object':
      if (w.id?.startsWith('inv_')) return <>the key, which is held by {w.target && <a class="strong" href={href(`/invocations/${segment(w.id)}`)}><bdi>{w.target}</bdi></a>} <InvocationID id={w.id} /></>
      break
    case 'vqueue':
      return <><TimedText text={w.text} /> {w.id && <a href={href('/flow-control/queues', { id: w.id })}>Show the queue</a>}</>
    case 'awakeable':
      if (w.id) return <>the awakeable <ID id={w.id} /><Command text={`platform awakeables resolve ${w.id} '<value>'`} /></>
  }
  return <>{w.text}</>
}
