// The scenario of the client matrix: what every Node library does. A program hands its library to main().
//
// A library has: version, nullHeaders (whether header values may be null), and
//   produce(topic, codec, records, {idempotent, partition})   records: {key, value, headers: [[name, value]]}
//   read(topic, count, {offset, timestamp})                   from the beginning unless told: {offset, key, value, headers}
//   member(group, topic)     a member with assigned() and seen (a set of 'partition:offset'), commit() and close()
//   createTopic, topics, partitions, deleteTopic, config, groups, groupState, deleteGroup, deleteRecords
// A call that a library has not throws Absent.

import { isDeepStrictEqual } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'

export const LIMIT_MS = 20_000
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const PARTITIONS = 4
const PER_PARTITION = 50
const FIRST_TIMESTAMP = 1_700_000_000_000

export class Absent extends Error {}

const b = text => Buffer.from(text)

const plain = i => ({ key: b(`key-${i}`), value: b(`value-${i}-${'x'.repeat(i % 300)}`), headers: [] })

const nulls = i => ({
  key: i % 3 === 0 ? null : b(i % 5 === 0 ? '' : `key-${i}`),
  value: i % 3 === 1 ? null : b(i % 5 === 1 ? '' : `value-${i}`),
  headers: []
})

const headers = nullHeaders => i => {
  const all = [['n', b(`${i}`)], ['n', b('again')], ['empty', b('')]]
  return { key: b(`key-${i}`), value: b(`value-${i}`), headers: nullHeaders ? [...all, ['null', null]] : all }
}

const large = () => {
  const value = Buffer.alloc(5 * 1024 * 1024)
  for (let at = 0; at < value.length; at++) value[at] = at % 251
  return { key: b('large'), value, headers: [] }
}

const short = value => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}` : v))?.slice(0, 300)

function same (want, got, what) {
  if (!isDeepStrictEqual(want, got)) throw new Error(`${what}: ${short(got)}, want ${short(want)}`)
}

export async function until (what, condition) {
  const deadline = Date.now() + LIMIT_MS
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
    await sleep(20)
  }
}

async function check (capability, body) {
  try {
    await body()
    console.log(`ok ${capability}`)
  } catch (error) {
    if (error instanceof Absent) {
      console.log(`none ${capability}: ${error.message}`)
    } else {
      console.error(error)
      console.log(`FAIL ${capability}: ${String(error).replaceAll('\n', ' ')}`)
    }
  }
}

async function producing (library, name) {
  const written = async (topic, codec, count, content, idempotent = false) => {
    const want = Array.from({ length: count }, (_, i) => content(i))
    await library.produce(topic, codec, want, { idempotent })
    const got = await library.read(topic, count)
    same(count, got.length, 'records')
    got.forEach((record, i) => same({ offset: i, ...want[i] }, record, `record ${i}`))
  }
  for (const codec of CODECS) await check(codec, () => written(`${name}-${codec}`, codec, 300, plain))
  await check('nulls', () => written(`${name}-nulls`, 'none', 40, nulls))
  await check('headers', () => written(`${name}-headers`, 'none', 40, headers(library.nullHeaders)))
  await check('5 MB', () => written(`${name}-large`, 'none', 1, large))
  await check('idempotence', () => written(`${name}-idempotence`, 'none', 300, plain, true))
}

async function grouping (library, name) {
  const topic = `${name}-group`
  const all = Array.from({ length: PARTITIONS }, (_, p) => p)
  const everywhere = offset => all.map(p => `${p}:${offset}`)
  const produceEverywhere = async () => {
    for (const partition of all) await library.produce(topic, 'none', [{ key: null, value: b('more'), headers: [] }], { partition })
  }
  let one
  let two
  await check('two members', async () => {
    one = await library.member(name, topic)
    await until('every record', () => one.seen.size === PARTITIONS * PER_PARTITION)
    await one.commit()
    two = await library.member(name, topic)
    await until('partitions for both', () => one.assigned().length === 2 && two.assigned().length === 2)
    same(all, [...one.assigned(), ...two.assigned()].sort(), 'partitions')
    const ofTheSecond = two.assigned().map(p => `${p}:${PER_PARTITION}`)
    await produceEverywhere()
    await until('new records by both', () => everywhere(PER_PARTITION).every(r => one.seen.has(r) || two.seen.has(r)))
    same(ofTheSecond.sort(), [...two.seen].sort(), 'records of the second')
  })
  await check('take-over', async () => {
    await two.commit()
    await two.close()
    await until('all partitions', () => one.assigned().length === PARTITIONS)
    await produceEverywhere()
    await until('new records of all partitions', () => everywhere(PER_PARTITION + 1).every(r => one.seen.has(r)))
  })
  await check('restart', async () => {
    await one.commit()
    await one.close()
    await produceEverywhere()
    const three = await library.member(name, topic)
    await until('new records', () => everywhere(PER_PARTITION + 2).every(r => three.seen.has(r)))
    same(everywhere(PER_PARTITION + 2), [...three.seen].sort(), 'records after the commit')
    await three.close()
  })
}

async function seeking (library, name) {
  const first = async where => (await library.read(`${name}-seek`, 1, where))[0].value.toString()
  await check('seek', async () => {
    same('seek-42', await first({ offset: 42 }), 'record at offset 42')
    same('seek-0', await first(), 'first record')
  })
  await check('timestamps', async () => same('seek-60', await first({ timestamp: FIRST_TIMESTAMP + 59_500 }), 'record at the timestamp'))
}

async function administering (library, name) {
  const made = `${name}-made`
  await check('topics', async () => {
    await library.createTopic(made, 3)
    await until('the topic is listed', async () => (await library.topics()).includes(made))
    same(3, await library.partitions(made), 'partitions')
    await library.deleteTopic(made)
    await until('the topic is gone', async () => !(await library.topics()).includes(made))
  })
  await check('configs', async () => same('6000000', await library.config(`${name}-large`, 'max.message.bytes'), 'max.message.bytes'))
  await check('groups', async () => {
    same(true, (await library.groups()).includes(name), 'listed')
    same('Empty', await library.groupState(name), 'state')
  })
  await check('delete group', async () => {
    await library.deleteGroup(name)
    same(false, (await library.groups()).includes(name), 'still listed')
  })
  await check('delete records', async () => {
    await library.deleteRecords(`${name}-seek`, 10)
    same(10, (await library.read(`${name}-seek`, 1))[0].offset, 'first offset')
  })
}

// usage: node PROGRAM BOOTSTRAP NAME, or node PROGRAM BOOTSTRAP TOPIC COUNT, which prints records of partition 0
export async function main (open) {
  const [bootstrap, name, count] = process.argv.slice(2)
  const library = await open(bootstrap)
  if (count !== undefined) {
    for (const { key, value, headers } of await library.read(name, Number(count))) {
      console.log([key, value, ...headers.map(([name, of]) => `${name}=${of}`)].map(String).join(' '))
    }
    process.exit(0)
  }
  console.log(`version ${library.version}`)
  await producing(library, name)
  await grouping(library, name)
  await seeking(library, name)
  await administering(library, name)
  process.exit(0)
}
