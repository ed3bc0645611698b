// What an invocation waits for, as a chain: each invocation on the way with its status, down to what
// has to happen.

import type { Wait } from '../api/types.ts'
import { href, segment } from '../router.ts'
import { Command, ID, InvocationID, Pill, Status, Time } from '../ui/basic.tsx'
import { Icon, type IconName } from '../ui/icons.tsx'

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
          {w.summary && (w.waiting_for ?? []).length === 0 && <p class="muted">{w.summary}</p>}
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
      return <>{w.text} {w.id && <a href={href('/flow-control/queues', { id: w.id })}>Show the queue</a>}</>
    case 'awakeable':
      if (w.id) return <>the awakeable <ID id={w.id} /><Command text={`platform awakeables resolve ${w.id} '<value>'`} /></>
  }
  return <>{w.text}</>
}
