// Tests of the failure inbox.

import assert from 'node:assert/strict'
import { axe, noProblems, open, test } from './lib.mjs'
import { hostile, until } from './world.mjs'

export async function testFailures(w) {
  await test('a failure group is muted with a note, listed apart, and unmuted', async () => {
    const { groups } = await w.api('/failures?muted=false')
    const group = groups.find((g) => g.handler === 'flaky')
    const t = await open(w, `/ui/failures/${group.id}`)
    await t.settled()
    await t.page.getByRole('button', { name: 'Mute' }).click()
    const note = `the endpoint eu-1 is down ${hostile[0]}`
    await t.page.getByRole('dialog').getByLabel('Note').fill(note)
    await t.page.getByRole('dialog').getByRole('button', { name: 'Mute' }).click()
    await t.page.getByRole('note').getByText(note).waitFor()
    assert.deepEqual(await axe(t.page), [])
    await until('fewer failures in the side bar', async () => (await t.page.locator('.sidebar .badge.bad').first().innerText()) === String(groups.length - 1))
    await t.page.goto(`${w.admin}/ui/failures`)
    await t.settled()
    assert.equal(await t.page.locator(`tbody a[href$="${group.id}"]`).count(), 0, 'it is still listed')
    await t.page.getByRole('link', { name: 'Muted' }).click()
    await t.page.locator('tbody').getByText('the endpoint eu-1 is down').waitFor()
    assert.deepEqual(await axe(t.page), [])
    const [row] = await w.query(`SELECT muted, note FROM sys_failure_group WHERE id = '${group.id}'`)
    assert.deepEqual(row, { muted: true, note })
    await t.page.locator('tbody').getByRole('link').first().click()
    await t.page.getByRole('button', { name: 'Unmute' }).click()
    await t.page.getByRole('button', { name: 'Mute', exact: true }).waitFor()
    assert.equal((await w.api(`/failures/${group.id}`)).muted, undefined)
    noProblems(t)
    await t.close()
  })
}
