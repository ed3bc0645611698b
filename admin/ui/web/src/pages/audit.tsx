// The audit log: who changed what.

import { get } from '../api/client.ts'
import type { AuditRecord, AuditVerification } from '../api/types.ts'
import { useResource } from '../resource.ts'
import { formatCount } from '../lib/format.ts'
import { href, navigate, query } from '../router.ts'
import { refusalOf } from '../session.ts'
import { Button, Empty, Loaded, PageHead, Time } from '../ui/basic.tsx'
import { toast, toastError } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'

export function Audit() {
  const refusal = refusalOf('secure')
  if (refusal) return <Empty title="Audit log" icon="key" page><p>{refusal}</p></Empty>
  return <List />
}

const page = 100

function List() {
  // In the address, so that the browser's back button works.
  const before = Number(query.value.get('before')) || undefined
  const records = useResource(`audit:${before ?? ''}`, (s) => get<{ records: AuditRecord[] }>(`/audit?limit=${page}${before ? `&before=${before}` : ''}`, s), { every: 10_000, keep: true })
  const verify = (): void => {
    get<AuditVerification>('/audit/verification').then((v) => {
      if (v.intact) toast('ok', `The ${v.records} records are intact`)
      else toastError(new Error(v.problem ?? 'The audit log was changed'))
    }, toastError)
  }
  return (
    <>
      <div class="crumbs"><a href={href('/settings')}>Settings</a></div>
      <PageHead title="Audit log" summary="Who changed what through the admin API"><Button onClick={verify}>Verify</Button></PageHead>
      <Loaded of={records} what="The audit log could not be read">{(r) => r.records.length === 0 ? <Empty title={before === undefined ? 'No records' : 'No older records'} icon="key">{before !== undefined && <p><Button onClick={() => navigate(href('/audit'))}>Newest</Button></p>}</Empty> : (
        <>
          <Table label="Audit log" rows={r.records} keyOf={(o) => String(o.sequence)} columns={[
            { id: 'n', title: 'Number', class: 'num fit', cell: (o) => o.sequence },
            { id: 'at', title: 'Time', class: 'num fit', cell: (o) => <Time at={o.at} /> },
            { id: 'who', title: 'Principal', class: 'cut', cell: (o) => o.principal ?? <span class="faint">none</span> },
            { id: 'from', title: 'Address', class: 'fit', cell: (o) => <span class="mono">{o.address}</span> },
            { id: 'action', title: 'Action', class: 'path', cell: (o) => <span class="mono">{o.action}</span> },
            { id: 'object', title: 'Object', class: 'path', cell: (o) => (o.action.endsWith(` ${o.object}`) ? <span class="faint">–</span> : <span class="mono wrap">{o.object}</span>) },
            { id: 'outcome', title: 'Outcome', class: 'text', cell: (o) => ((o.status ?? 0) < 400 && o.outcome?.startsWith('dry run') ? o.outcome : o.outcome || (o.status ?? 0) >= 400 ? <span class="bad-text">{o.outcome || `refused (status ${o.status})`}</span> : 'done') },
          ]} />
          <footer class="pager">
            <span class="muted">{before === undefined ? 'Newest records' : `Records before number ${formatCount(before)}`}</span><span class="grow" />
            {before !== undefined && <Button icon="left" onClick={() => navigate(href('/audit'))}>Newest</Button>}
            {r.records.length === page && <Button icon="right" onClick={() => navigate(href('/audit', { before: String(r.records[r.records.length - 1]!.sequence) }))}>Older</Button>}
          </footer>
        </>
      )}</Loaded>
    </>
  )
}
