// Asks for a login when the server requires one: with an identity provider, or a token.

import { useEffect, useState } from 'preact/hooks'
import { get } from '../api/client.ts'
import type { Identity, LoginOptions } from '../api/types.ts'
import { refreshAll } from '../live.ts'
import { forgetAll } from '../resource.ts'
import { identity, keepLogoutPage, loginNeeded, logoutPage, setToken, users } from '../session.ts'
import { Field } from '../ui/basic.tsx'
import { closeDialogs } from '../ui/overlay.tsx'
import { Logo } from '../ui/icons.tsx'

/** The address that begins a login with the identity provider and returns to this page. */
export function startAddress(start: string, page: string): string {
  return `${start}?return=${encodeURIComponent(page)}`
}

/** Logs in with the identity provider, if there is one. */
function Provider() {
  const [options, setOptions] = useState<LoginOptions>()
  useEffect(() => {
    get<LoginOptions>('/login').then(setOptions, () => undefined) // tokens remain
  }, [])
  const provider = options?.oidc
  if (!provider?.start_url) return null
  return (
    <>
      <a class="button primary" href={startAddress(provider.start_url, location.pathname + location.search)} onClick={() => {
        setToken('')
        keepLogoutPage(undefined)
      }}><span>Log in with {new URL(provider.issuer).host}</span></a>
      <p class="muted">or with a token:</p>
    </>
  )
}

/** After a logout: the page of the identity provider at which its session ends as well. */
export function ProviderLogout() {
  const page = logoutPage()
  if (!page) return null
  return <p role="note">You have logged out here, and are still logged in at the identity provider. On a shared machine, also <a href={page} rel="noreferrer">log out at {new URL(page).host}</a>.</p>
}

export function Login() {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const submit = async (): Promise<void> => {
    setBusy(true)
    setError('')
    setToken(text.trim())
    try {
      const who = await get<Identity>('/whoami')
      if (who.permissions.length === 0) {
        setToken('')
        setError(who.name ? `The token “${who.name}” permits nothing. Ask an administrator for a role.` : 'The server does not know this token, or it has expired.')
      } else {
        forgetAll()
        keepLogoutPage(undefined)
        const before = identity.peek()
        if (before && (before.name !== who.name || before.session !== who.session)) {
          closeDialogs()
          users.value++
        }
        identity.value = who
        loginNeeded.value = false
        refreshAll()
        return
      }
    } catch (err) {
      setToken('')
      setError((err as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="login">
      <form onSubmit={(e) => {
        e.preventDefault()
        void submit()
      }}>
        <h1><Logo /> Log in</h1>
        <ProviderLogout />
        <Provider />
        <p>The first token is in the file <code>admin.token</code> in the data directory of the node; <code>platform tokens create</code> creates others.</p>
        <Field label="Token" error={error || undefined}>
          <input class="input mono" type="password" autocomplete="current-password" spellcheck={false} required autofocus value={text} onInput={(e) => setText(e.currentTarget.value)} placeholder="plt_…" />
        </Field>
        <button type="submit" class="button primary" disabled={busy || text.trim() === ''}><span>{busy ? 'Checking…' : 'Log in'}</span></button>
      </form>
    </main>
  )
}
