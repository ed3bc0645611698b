// Starts a copy of an invocation with an edited input.

import { useState } from 'preact/hooks'
import { request } from '../api/client.ts'
import type { Invocation } from '../api/types.ts'
import { readFirstEntry, readPayload } from '../journals.ts'
import { buildSteps } from '../lib/journal.ts'
import { formatBytes } from '../lib/format.ts'
import { reformat } from '../lib/json.ts'
import { decode } from '../lib/payload.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, navigate, segment } from '../router.ts'
import { refusalOf } from '../session.ts'
import { ErrorBox, Field, Skeleton } from '../ui/basic.tsx'
import { Editor } from '../ui/editor.tsx'
import { FormButtons, useSubmission } from '../ui/form.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'

/** Inputs above this size are copied, not edited. */
const editable = 1 << 20

interface Original {
  text: string
  json: boolean
  /** Why it cannot be edited. */
  locked?: string
}

export function copyInvocation(i: Invocation): void {
  void openDialog('Copy with edited input', (close) => <CopyDialog i={i} close={close} />, true)
}

async function readInput(id: string): Promise<Original> {
  const unreadable = refusalOf('payloads')
  if (unreadable) return { text: '', json: true, locked: `The input is not shown. ${unreadable} The copy gets the same input.` }
  const row = await readFirstEntry(id)
  const input = row && buildSteps([row])[0]?.input
  if (!input) return { text: '', json: true, locked: 'The journal with the input is no longer kept.' }
  if (input.length > editable) return { text: '', json: false, locked: `The input has ${formatBytes(input.length)}, too much for this editor. The copy gets the same input; another one can be given with platform invocations copy.` }
  const bytes = input.bytes ?? await readPayload(id, 0)
  const d = decode(bytes)
  if (d.text === undefined) return { text: '', json: false, locked: 'The input is not text. The copy gets the same input.' }
  return { text: d.kind === 'json' && typeof d.json === 'object' ? reformat(d.text, 2) : d.text, json: d.kind === 'json' || d.kind === 'empty' }
}

function CopyDialog({ i, close }: { i: Invocation; close: () => void }) {
  const original = useResource(`input:${i.id}`, () => readInput(i.id), { every: 0 })
  if (original.data) return <Form i={i} original={original.data} close={close} />
  return (
    <DialogFrame title="Copy with edited input" close={close}>
      {original.error ? <ErrorBox what="The input could not be read" error={original.error} retry={original.reload} /> : <Skeleton rows={5} />}
    </DialogFrame>
  )
}

function Form({ i, original, close }: { i: Invocation; original: Original; close: () => void }) {
  const [text, setText] = useState(original.text)
  const form = useSubmission(close, async () => {
    const edited = text !== original.text && original.locked === undefined
    const made = await request<{ new_invocation_id: string }>(`/invocations/${segment(i.id)}/copy`, { method: 'POST', body: edited ? { input: text } : {} })
    toast('ok', 'The copy was started')
    refreshAll()
    navigate(href(`/invocations/${segment(made.new_invocation_id)}`))
  })
  const broken = original.json && text.trim() !== '' && decode(new TextEncoder().encode(text)).kind !== 'json'
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title="Copy with edited input" close={close} actions={<FormButtons close={close} action="Start copy" busy={form.busy} />}>
        <p>A new invocation of <span class="mono wrap"><bdi>{i.target}</bdi></span> starts on the latest deployment, with the same headers. This one is not changed.</p>
        {original.locked
          ? <p class="notice">{original.locked}</p>
          : original.json
            ? <div class="field"><span class="field-label">Input</span><Editor language="json" label="Input" value={original.text} onChange={setText} minHeight="200px" /></div>
            : <Field label="Input"><textarea class="input mono" rows={8} value={text} onInput={(e) => setText(e.currentTarget.value)} /></Field>}
        {broken && <p class="notice">This is not valid JSON. Handlers of most SDKs expect JSON.</p>}
        {form.error && <p class="dialog-error" role="alert">{form.error.message}</p>}
      </DialogFrame>
    </form>
  )
}
