// The client matrix with @platformatic/kafka.

import { readFileSync } from 'node:fs'
import { Admin, ConfigResourceTypes, Consumer, Producer } from '@platformatic/kafka'
import { main, until } from './scenario.mjs'

const options = bootstrap => ({ clientId: 'matrix', bootstrapBrokers: [bootstrap] })

class Member {
  seen = new Set()
  #next = new Map()

  static async start (bootstrap, group, topic) {
    const member = new Member()
    member.consumer = new Consumer({ ...options(bootstrap), groupId: group, sessionTimeout: 6000, rebalanceTimeout: 6000, heartbeatInterval: 300, maxWaitTime: 100, autocommit: false })
    member.stream = await member.consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
    member.stream.on('data', ({ topic, partition, offset }) => {
      member.seen.add(`${partition}:${offset}`)
      member.#next.set(partition, { topic, partition, offset: offset + 1n, leaderEpoch: 0 })
    })
    member.stream.on('error', error => console.error(error))
    return member
  }

  assigned () {
    return (this.consumer.assignments ?? []).flatMap(assignment => assignment.partitions)
  }

  commit () {
    const mine = this.assigned()
    return this.consumer.commit({ offsets: [...this.#next.values()].filter(({ partition }) => mine.includes(partition)) })
  }

  close () {
    return this.consumer.close(true)
  }
}

class Library {
  version = JSON.parse(readFileSync(new URL('node_modules/@platformatic/kafka/package.json', import.meta.url))).version
  nullHeaders = true
  #readers = 0

  constructor (bootstrap) {
    this.bootstrap = bootstrap
    this.admin = new Admin(options(bootstrap))
  }

  async produce (topic, codec, records, { idempotent = false, partition = 0 } = {}) {
    const producer = new Producer({ ...options(this.bootstrap), idempotent })
    const messages = records.map(({ key, value, headers }) => ({
      topic,
      partition,
      key,
      value,
      headers: new Map(headers.map(([name, content]) => [Buffer.from(name), content]))
    }))
    await producer.send({ messages, compression: codec })
    await producer.close()
  }

  async read (topic, count, { offset, timestamp } = {}) {
    const groupId = `${topic}-reader-${++this.#readers}`
    const consumer = new Consumer({ ...options(this.bootstrap), groupId, autocommit: false, maxWaitTime: 100, maxBytes: 6_000_000 })
    if (timestamp !== undefined) {
      const found = await consumer.listOffsetsWithTimestamps({ topics: [topic], timestamp: BigInt(timestamp) })
      offset = found.get(topic).get(0).offset
    }
    const where = offset === undefined ? { mode: 'earliest' } : { mode: 'manual', offsets: [{ topic, partition: 0, offset: BigInt(offset) }] }
    const stream = await consumer.consume({ topics: [topic], ...where })
    const found = []
    stream.on('data', message => {
      const headers = [...message.headers].map(([name, content]) => [name.toString(), content ?? null])
      found.push({ offset: Number(message.offset), key: message.key ?? null, value: message.value ?? null, headers })
    })
    stream.on('error', error => console.error(error))
    await until(`${count} records`, () => found.length >= count)
    await consumer.close(true)
    await this.admin.deleteGroups({ groups: [groupId] })
    return found.slice(0, count)
  }

  member (group, topic) {
    return Member.start(this.bootstrap, group, topic)
  }

  createTopic (topic, partitions) {
    return this.admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  }

  topics () {
    return this.admin.listTopics()
  }

  async partitions (topic) {
    return (await this.admin.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic).partitionsCount
  }

  deleteTopic (topic) {
    return this.admin.deleteTopics({ topics: [topic] })
  }

  async config (topic, key) {
    const [resource] = await this.admin.describeConfigs({ resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }] })
    return resource.configs.find(config => config.name === key).value
  }

  async groups () {
    return [...(await this.admin.listGroups()).keys()]
  }

  async groupState (group) {
    const { state } = (await this.admin.describeGroups({ groups: [group] })).get(group)
    return state[0].toUpperCase() + state.slice(1).toLowerCase()
  }

  deleteGroup (group) {
    return this.admin.deleteGroups({ groups: [group] })
  }

  deleteRecords (topic, offset) {
    return this.admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: BigInt(offset) }] }] })
  }
}

await main(async bootstrap => new Library(bootstrap))
