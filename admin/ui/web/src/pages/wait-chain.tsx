// What an invocation waits for, as a chain: each invocation on the way with its status, down to what
// has to happen.

import type { Wait } from '../api/types.ts'
import { withMore } from '../more.ts'
import { href, segment } from '../router.ts'
import { Button, Elapsed, ID, InvocationID, Pill, Status, Time } from '../ui/basic.tsx'
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

/** live: what it waits for can be completed. */
export function WaitChain({ waits, live }: { waits: readonly Wait[]; live: boolean }) {
  if (waits.length === 0) return null
  return <ul class="waits" aria-label="Waits for">{waits.map((w, n) => <Link key={n} of={w} live={live} />)}</ul>
}

function Link({ of: w, live }: { of: Wait; live: boolean }) {
  return (
    <li>
      <div class="wait">
        <Icon name={icons[w.kind] ?? 'clock'} size={14} />
        <div>
          <p><Subject of={w} live={live} />{w.status && <> <Status status={w.status} /></>}{w.cycle && <> <Pill tone="bad">cycle: they wait for each other</Pill></>}</p>
          {w.summary && (w.waiting_for ?? []).length === 0 && <p class="muted"><TimedText text={w.summary} /></p>}
        </div>
      </div>
      <WaitChain waits={w.waiting_for ?? []} live={live} />
    </li>
  )
}

/** What it is, in words, with links. */
function Subject({ of: w, live }: { of: Wait; live: boolean }) {
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
      if (w.id) return <>the awakeable <ID id={w.id} />{live && <Completion id={w.id} />}</>
  }
  return <>{w.text}</>
}

/** Buttons that complete an awakeable. */
export function Completion({ id }: { id: string }) {
  const complete = (reject: boolean) => (): void => withMore((m) => m.completeAwakeable(id, reject))
  return <span class="row-actions"><Button small onClick={complete(false)}>Resolve</Button><Button small onClick={complete(true)}>Reject</Button></span>
}
