// Tests of what can be done with an invocation.

import assert from 'node:assert/strict'
import { axe, noProblems, open, test } from './lib.mjs'
import { until } from './world.mjs'

export async function testInvocations(w, ids) {
  await test('an invocation is copied with an edited input', async () => {
    const t = await open(w, `/ui/invocations/${ids.order}`)
    await t.page.getByRole('button', { name: 'More actions' }).click()
    await t.page.getByRole('menuitem', { name: 'Copy with edited input' }).click()
    const dialog = t.page.getByRole('dialog')
    const editor = dialog.locator('.cm-content')
    await editor.getByText('book').waitFor()
    assert.deepEqual(await axe(t.page), [])
    await editor.fill('{"item": "a lamp, edited", "amount": 7}')
    await dialog.getByRole('button', { name: 'Start copy' }).click()
    await t.page.waitForURL((url) => !url.pathname.endsWith(ids.order))
    const id = new URL(t.page.url()).pathname.split('/').pop()
    await t.page.getByText('a lamp, edited').first().waitFor()
    const [copy] = await w.query(`SELECT restarted_from, target FROM sys_invocation WHERE id = '${id}'`)
    assert.deepEqual(copy, { restarted_from: ids.order, target: 'Orders/place' })
    await until('its end', async () => (await w.api(`/invocations/${id}`)).status === 'completed')
    noProblems(t)
    await t.close()
  })

  await test('what an invocation waits for is shown as a chain with links', async () => {
    const t = await open(w, `/ui/invocations/${ids.queued}`)
    const chain = t.page.getByRole('list', { name: 'Waits for' }).first()
    await chain.getByText('the key, which is held by').waitFor()
    await chain.getByText('the end of a sleep').waitFor()
    assert.deepEqual(await axe(t.page), [])
    await chain.getByRole('link', { name: 'Cart/busy/hold' }).click()
    await t.page.waitForURL((url) => url.pathname.endsWith(ids.holder))
    noProblems(t)
    await t.close()
  })

  await test('a wait chain is updated when an invocation further down changes', async () => {
    const first = await w.send('Cart/chained/hold', '2h')
    const second = await w.send('Cart/chained/hold', '2h')
    await w.status(second, 'pending')
    const order = await w.send('Orders/place', { item: 'chained', amount: 1 })
    await w.status(order, 'suspended')
    const t = await open(w, `/ui/invocations/${order}`)
    const chain = t.page.getByRole('list', { name: 'Waits for' }).first()
    await chain.locator(`a[href$="${first}"]`).first().waitFor()
    await w.api(`/invocations/${first}/kill`, { method: 'PATCH' })
    await chain.locator(`a[href$="${second}"]`).first().waitFor()
    await w.api(`/invocations/${second}/kill`, { method: 'PATCH' })
    await w.status(order, 'completed')
    await chain.waitFor({ state: 'detached' })
    noProblems(t)
    await t.close()
  })
}
