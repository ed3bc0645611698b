// Opens an exported invocation from a file, without the server.

import { useMemo, useState } from 'preact/hooks'
import { kindOfID } from '../lib/format.ts'
import { fromBase64 } from '../lib/payload.ts'
import { PageHead, Time } from '../ui/basic.tsx'
import { InvocationView, type BundleFile } from './invocation.tsx'

const maxSize = 256 << 20

export function Bundle() {
  const [bundle, setBundle] = useState<BundleFile>()
  const [error, setError] = useState('')
  const open = (file: File | undefined): void => {
    setError('')
    if (!file) return
    if (file.size > maxSize) {
      setError('The file is larger than 256 MiB.')
      return
    }
    file.text().then((text) => {
      const b = JSON.parse(text) as BundleFile
      if (b.kind !== 'invocation-bundle' || b.version !== 1 || !Array.isArray(b.journal) || kindOfID(b.invocation?.id ?? '') !== 'invocation') throw new Error('not a bundle')
      for (const payload of Object.values(b.payloads ?? {})) fromBase64(payload) // throws
      setBundle(b)
    }).catch(() => setError('This file is not an invocation bundle.'))
  }
  const fixed = useMemo(() => (bundle ? new Map([[bundle.invocation.id, bundle]]) : undefined), [bundle])
  return (
    <>
      <PageHead title="Invocation bundle" summary={bundle ? <>Exported <Time at={bundle.exported_at} />. It is shown from the file, without requests to the server.</> : 'A file that was exported from the page of an invocation'} />
      <label class="drop" onDragOver={(e) => e.preventDefault()} onDrop={(e) => {
        e.preventDefault()
        open(e.dataTransfer?.files[0])
      }}>
        <span>{bundle ? 'Open another file' : 'Choose a file, or drop it here'}</span>
        <input type="file" accept="application/json,.json" onChange={(e) => open(e.currentTarget.files?.[0])} />
      </label>
      {error && <p class="dialog-error" role="alert">{error}</p>}
      {bundle && <InvocationView inv={bundle.invocation} events={bundle.events ?? []} explain={bundle.explain} {...(fixed ? { fixed } : {})} />}
    </>
  )
}
