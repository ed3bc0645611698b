import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StepBuilder, buildSteps, type JournalRow } from '../src/lib/journal.ts'
import { decode, hexRows, preview } from '../src/lib/payload.ts'
import { awaitedSteps, explainRecord } from '../src/lib/explain.ts'
import { recounts } from '../src/lib/recounts.ts'
import { diffLines } from '../src/lib/diff.ts'
import { toCSV } from '../src/lib/csv.ts'
import { sampleOf } from '../src/lib/schema.ts'

const bytes = (text: string): number[] => [...new TextEncoder().encode(text)]
const row = (index: number, entry_type: string, json: unknown, more: Partial<JournalRow> = {}): JournalRow => ({ index, entry_type, json: JSON.stringify(json), raw_length: 20, appended_at: `2026-11-22T10:00:0${index}.000Z`, ...more })

const journal: JournalRow[] = [
  row(0, 'Command: Input', { Command: { Input: { headers: [{ name: 'a', value: 'b' }], payload: bytes('"Ada"'), name: '' } } }),
  row(1, 'Command: Run', { Command: { Run: { completion_id: 1, name: 'compose' } } }, { name: 'compose' }),
  row(2, 'Notification: Run', { Notification: { Completion: { Run: { completion_id: 1, result: { Success: bytes('"hi"') } } } } }),
  row(3, 'Command: Call', { Command: { Call: { request: { invocation_target: { VirtualObject: { name: 'Counter', key: 'ada', handler: 'add' } }, parameter: bytes('1'), headers: [] }, invocation_id_completion_id: 2, result_completion_id: 3, name: '' } } }, { invoked_id: 'inv_1child' }),
  row(4, 'Notification: CallInvocationId', { Notification: { Completion: { CallInvocationId: { completion_id: 2, invocation_id: 'inv_1child' } } } }),
  row(5, 'Command: Sleep', { Command: { Sleep: { completion_id: 4, wake_up_time: Date.UTC(2026, 10, 22, 11), name: '' } } }),
  row(6, 'Notification: Call', { Notification: { Completion: { Call: { completion_id: 3, result: { Failure: { code: 409, message: 'sold out', metadata: {} } } } } } }),
  row(7, 'Notification: Signal', { Notification: { Signal: { id: { Index: 17 }, result: { Success: bytes('true') } } } }),
  row(8, 'Command: Output', { Command: { Output: { result: { Success: [] }, name: '' } } }, { raw_length: 99_999 }),
]

test('content is an object, or text in bundles of older servers', () => {
  const [entry] = buildSteps([{ index: 0, entry_type: 'Command: Input', content: JSON.parse(journal[0]!.json!) as Record<string, unknown>, raw_length: 20, appended_at: journal[0]!.appended_at! }])
  assert.deepEqual(entry, buildSteps(journal.slice(0, 1))[0])
})

test('a journal that is read in parts has the same steps', () => {
  for (let cut = 0; cut <= journal.length; cut++) {
    const builder = new StepBuilder()
    builder.add(journal.slice(0, cut))
    assert.equal(builder.next, cut)
    builder.add(journal.slice(cut))
    assert.deepEqual(builder.steps, buildSteps(journal), `cut at ${cut}`)
  }
})

test('steps that were read stay as they are when entries are added', () => {
  const builder = new StepBuilder()
  builder.add(journal.slice(0, 3))
  const before = [...builder.steps]
  builder.add(journal.slice(3))
  assert.ok(before.every((s, n) => builder.steps[n] === s))
})

test('payloads that are read later are added to their steps', () => {
  const lite = journal.map((r) => r.index === 2 ? row(2, r.entry_type, { Notification: { Completion: { Run: { completion_id: 1, result: { Success: [] } } } } }, { raw_length: 5000 })
    : r.index === 0 ? row(0, r.entry_type, { Command: { Input: { headers: [], payload: [], name: '' } } }, { raw_length: 5000 }) : r)
  const builder = new StepBuilder()
  builder.add(lite)
  const [input, run] = builder.steps as [typeof builder.steps[0], typeof builder.steps[0]]
  assert.equal(input.input?.bytes, undefined)
  assert.equal(run.output?.bytes, undefined)
  builder.addPayload(0, new TextEncoder().encode('"Ada"'))
  builder.addPayload(2, new TextEncoder().encode('"hi"'))
  builder.addPayload(6, new Uint8Array(1)) // no step's payload
  assert.equal(preview(input.input), '"Ada"')
  assert.equal(preview(run.output), '"hi"')
  assert.equal(run.state, 'done')
  assert.equal(builder.steps.length, buildSteps(journal).length)
})

test('a pause tells how many attempts failed', () => {
  const pause = { cause: 'attempts-used-up', at: '2026-11-22T10:00:00Z', attempts: 3 }
  assert.match(explainRecord({ status: 'paused', last_pause: pause }, [], 0)!.text[0]!, /failed \(3\)/)
})

test('an invocation with a scope and a key may wait for either', () => {
  assert.equal(explainRecord({ status: 'pending', target_service_key: 'ada' }, [], 0)?.title, 'Waits for its key')
  assert.equal(explainRecord({ status: 'pending', target_service_key: 'ada', scope: 'acme' }, [], 0)?.title, 'Waits for its key or a slot')
  assert.equal(explainRecord({ status: 'pending', scope: 'acme' }, [], 0)?.title, 'Waits for a slot')
})

test('attempts that are counted from 1 again are marked, except after a resume', () => {
  const failed = (attempts?: number) => ({ type: 'TransientError', attempts })
  assert.deepEqual([...recounts([failed(1), failed(3), failed(1), { type: 'CancelRequested' }, failed(1), failed(2)])], [2, 4])
  assert.deepEqual([...recounts([failed(2), { type: 'Paused' }, { type: 'Resumed' }, failed(1), failed(), failed(1)])], [])
})

test('commands are joined with what came back for them', () => {
  const steps = buildSteps(journal)
  assert.deepEqual(steps.map((s) => `${s.index} ${s.verb} ${s.subject} ${s.state}`.trim()), [
    '0 input  instant', '1 run compose done', '3 call Counter/ada/add failed', '5 sleep  open', '7 signal received #17 instant', '8 return  instant',
  ])
  const [input, run, call, , , output] = steps as [typeof steps[0], typeof steps[0], typeof steps[0], unknown, unknown, typeof steps[0]]
  assert.equal(preview(input.input), '"Ada"')
  assert.deepEqual(input.headers, [{ name: 'a', value: 'b' }])
  assert.equal(preview(run.output), '"hi"')
  assert.equal(run.endIndex, 2)
  assert.equal(call.childID, 'inv_1child')
  assert.deepEqual(call.failure, { code: 409, message: 'sold out' })
  assert.equal(output.output?.bytes, undefined, 'a payload that was left out')
  assert.equal(output.output?.length, 99_999)
})

test('entries that cannot be read are shown, not lost', () => {
  const steps = buildSteps([{ index: 0, entry_type: 'Command: Later', json: '{broken' }, { index: 1, entry_type: 'Notification: Run', json: '{"Unreadable":"x"}' }, { index: 2, entry_type: 'Command: Run' }])
  assert.deepEqual(steps.map((s) => s.index), [0, 1, 2])
})

test('payloads', () => {
  assert.equal(decode(new Uint8Array()).kind, 'empty')
  assert.equal(decode(Uint8Array.from(bytes('{"a":1}'))).kind, 'json')
  assert.equal(decode(Uint8Array.from(bytes('hello'))).kind, 'text')
  assert.equal(decode(Uint8Array.of(0xff, 0xfe, 0)).kind, 'binary')
  assert.equal(preview({ bytes: Uint8Array.of(0xff, 0xfe, 0), length: 3 }), '<3 bytes>')
  assert.equal(preview({ length: 5000 }), '…')
  const [nothing] = buildSteps([row(1, 'Command: Output', { Command: { Output: { result: { Success: [] }, name: '' } } })])
  assert.deepEqual(nothing!.output, { bytes: new Uint8Array(), length: 0 }, 'an empty payload is not one that was left out')
  assert.equal([...preview({ bytes: Uint8Array.from(bytes('👩‍👩‍👧'.repeat(100))), length: 1 }, 10)].length, 10)
  assert.deepEqual(hexRows(Uint8Array.from(bytes('A\n')), 10), [{ offset: '00000000', hex: '41 0a', text: 'A·' }])
})

test('what a suspended invocation waits for', () => {
  const steps = buildSteps(journal)
  const now = Date.UTC(2026, 10, 22, 10)
  assert.deepEqual(awaitedSteps({ completions: [3], signals: [1, 17], nested: [{ completions: [4], named_signals: ['go'] }] }, steps, now), ['the response of Counter/ada/add', 'signal 17 (an awakeable)', 'the sleep that ends in 1h', 'the signal “go”'])
  assert.equal(explainRecord({ status: 'suspended', awaiting_on: { completions: [4] } }, steps, now)?.title, 'Waits for the sleep that ends in 1h')
  assert.equal(explainRecord({ status: 'running' }, steps, now), undefined)
  assert.equal(explainRecord({ status: 'completed' }, steps, now), undefined)
})

test('differences of lines', () => {
  assert.deepEqual(diffLines('a\nb\nc', 'a\nx\nc').map((l) => `${l.kind[0]}${l.text}`), ['sa', 'rb', 'ax', 'sc'])
  assert.deepEqual(diffLines('', 'a').map((l) => l.kind), ['add'])
  assert.deepEqual(diffLines('a\nb', 'a\nb').map((l) => l.kind), ['same', 'same'])
})

test('comma-separated values', () => {
  assert.equal(toCSV(['a', 'b'], [{ a: 'x,"y"', b: 1 }, { a: '=1+1' }]), 'a,b\r\n"x,""y""",1\r\n\'=1+1,\r\n')
})

test('samples of schemas', () => {
  assert.deepEqual(JSON.parse(sampleOf({ type: 'object', properties: { a: { type: 'string' }, b: { $ref: '#/$defs/n' } }, $defs: { n: { type: 'integer', minimum: 3 } } })), { a: '', b: 3 })
  assert.equal(sampleOf(undefined), '')
  assert.equal(sampleOf({}), '')
  assert.equal(typeof sampleOf({ $ref: '#' }), 'string', 'a schema that refers to itself ends')
})
