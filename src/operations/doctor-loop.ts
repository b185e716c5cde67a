/**
 * Tests that feedback arrives: sends a message to a recipient that is known to bounce or to complain, and waits for the
 * report about the message. Each test sends one message. The test affects neither the reputation of the account nor a
 * suppression list. A failure is a finding with a remedy.
 */
import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { parseDuration } from '../config/units.ts';
import { createFailure, type Finding } from '../doctor/finding.ts';
import type { DoctorStore } from '../doctor/installation.ts';
import { type LoopTest, runLoopTests } from '../doctor/loop.ts';
import { createSetupRemedy } from '../doctor/provider-events.ts';
import { getLoopRecipient } from '../message/return-path.ts';
import type { Account } from '../model/account.ts';
import type { NewMessage } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { createMessageIdGenerator } from '../model/submission.ts';
import { describeError } from '../printing/error-line.ts';
import type { AcceptStore } from '../store/contract.ts';
import { Findings } from './doctor/schemas.ts';
import { createAccountNotFound, createInvalid, ok, toMemberResult } from './errors.ts';
import type { DoctorContext, Operation } from './operation.ts';

const CHECK_NAME = 'loop';
const POLL_INTERVAL_MS = 250;
/** The maximum wait for reports. */
const MAX_WAIT_MS = 3_600_000;

const LoopInput = Type.Object({
  account: Type.Optional(
    Type.String({
      description: 'The account that sends; the default is the first account with an authenticated domain.',
    }),
  ),
  within: Type.String({ default: '2m', description: 'The maximum wait for reports, at most `1h`.' }),
});

/** Submits the test messages and waits for their reports. */
export const testFeedbackLoop: Operation<typeof LoopInput, typeof Findings, DoctorContext> = {
  name: 'doctor.loop',
  id: 'tryLoop',
  summary: 'Send messages that bounce, and wait for their feedback reports',
  // The test writes only its messages and their histories.
  makesChange: false,
  role: 'operator',
  readsContent: false,
  input: LoopInput,
  result: Findings,
  errors: [],
  async run({ account, within }, context) {
    const timeout = toMemberResult('within', parseDuration(within));
    if (!timeout.ok) return timeout;
    if (timeout.value > MAX_WAIT_MS) return createInvalid('within', 'the maximum is 1h');
    const { settings, machineClock: clock, installation, showProgress } = context;
    const tests = planLoopTests(settings);
    if (!Array.isArray(tests)) return ok([tests as Finding]);
    const startedAt = clock.now();
    try {
      const findings = await installation.withStore(async (store) => {
        const sender = await findSender(store, settings, account);
        if (!('from' in sender)) return [sender];
        const ids = createMessageIdGenerator(await store.findNewestId(), randomUUID);
        return runLoopTests({
          tests,
          send: (to) =>
            submitTestMessage(
              store,
              createTestMessage(ids.next(clock.now()), sender.account, sender.from, to, clock.now()),
            ),
          readMessage: (id) => store.findMessage(id),
          clock,
          waitForPoll: async () => {
            await installation.wait(POLL_INTERVAL_MS);
            showProgress(`waiting for feedback reports, ${Math.round((clock.now() - startedAt) / 1000)} s …`);
          },
          timeoutMs: timeout.value,
        });
      });
      return ok([...findings]);
    } catch (error) {
      return ok([createFailure(CHECK_NAME, describeError(error), 'correct the cause and run the command again')]);
    }
  },
};

interface Sender {
  readonly account: Account;
  readonly from: string;
}

/** Selects the account and the address that send the test message. Returns a finding if there is no such account. */
async function findSender(
  store: Pick<DoctorStore, 'listAccounts' | 'listDomains'>,
  settings: Settings,
  name: string | undefined,
): Promise<Sender | Finding> {
  const allAccounts = await store.listAccounts();
  const accounts = name === undefined ? allAccounts : allAccounts.filter((account) => account.name === name);
  const [firstAccount] = accounts;
  if (firstAccount === undefined) {
    return name === undefined
      ? createFailure(
          CHECK_NAME,
          'there is no account to send with',
          'start the service once, or run `postrider account create NAME`',
        )
      : createFailure(
          CHECK_NAME,
          createAccountNotFound(name).error.message,
          'correct the cause and run the command again',
        );
  }
  const sender = await selectSender(store, accounts, settings);
  if (sender !== null) return sender;
  const accountPhrase = name === undefined ? 'no account has an' : `the account ${name} has no`;
  const remedy = `run \`postrider domain add ${firstAccount.name} DOMAIN\`, publish its records, and run \`postrider domain verify DOMAIN\``;
  return createFailure(CHECK_NAME, `${accountPhrase} authenticated domain to send from`, remedy);
}

/** Returns the tests that these settings allow, or a finding if they allow no test. */
function planLoopTests({
  transport,
  returnPathDomain,
  feedbackListen,
  feedbackHttpListen,
  sesQueue,
}: Settings): LoopTest[] | Finding {
  switch (transport.kind) {
    case 'capture':
      return createFailure(
        CHECK_NAME,
        'capture: sends no message and receives no feedback',
        'set POSTRIDER_TRANSPORT to a provider or a relay',
      );
    case 'ses': {
      const remedy =
        feedbackHttpListen === null && sesQueue === null
          ? createSetupRemedy({ name: 'ses' })
          : 'check that the identity or configuration set publishes bounces and complaints to the topic, and that a service runs with the role feedback';
      return [
        { check: 'loop bounce', to: 'bounce@simulator.amazonses.com', expectedState: 'bounced', remedy },
        { check: 'loop complaint', to: 'complaint@simulator.amazonses.com', expectedState: 'complained', remedy },
      ];
    }
    case 'smtp': {
      if (returnPathDomain === null || feedbackListen === null) {
        return createFailure(
          CHECK_NAME,
          'this service receives no bounces: it has no return path',
          'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN (docs/feedback.md)',
        );
      }
      const remedy = `check that the relay keeps the envelope sender, that the MX of ${returnPathDomain} points to the feedback listener, and that port 25 of that host is open`;
      return [{ check: 'loop bounce', to: getLoopRecipient(returnPathDomain) ?? '', expectedState: 'bounced', remedy }];
    }
  }
}

/**
 * Selects the first account that has a sender address. A locked account is selected only if no unlocked account has a
 * sender address.
 */
async function selectSender(
  store: Pick<DoctorStore, 'listDomains'>,
  accounts: readonly Account[],
  { senders, returnPathDomain }: Settings,
): Promise<Sender | null> {
  const authenticatedDomains = (await store.listDomains()).filter(({ status }) => status === 'authenticated');
  const [locked, unlocked] = [
    accounts.filter((account) => account.locked !== null),
    accounts.filter((account) => account.locked === null),
  ];
  for (const account of [...unlocked, ...locked]) {
    const authenticatedDomain = authenticatedDomains.find(({ accountId }) => accountId === account.id);
    const domain = authenticatedDomain?.name ?? (senders === 'any' ? returnPathDomain : null);
    if (domain !== null) return { account, from: `postrider-doctor@${domain}` };
  }
  return null;
}

function createTestMessage(id: string, account: Account, from: string, to: string, now: number): NewMessage {
  return {
    id,
    accountId: account.id,
    // The key id 0 marks a test message. A report about a test message changes neither the reputation of the account
    // nor a suppression list.
    keyId: 0,
    acceptedAt: now,
    to,
    recipient: to,
    from,
    subject: 'Postrider feedback test',
    message: '`postrider doctor --loop` sent this message to test that its bounce or complaint arrives.',
    idempotency: null,
    lease: null,
    suppressedBy: null,
  };
}

/** Submits the message and resolves to its id. Rejects if the store does not accept the message. */
async function submitTestMessage(store: Pick<AcceptStore, 'accept'>, message: NewMessage): Promise<string> {
  const [result] = await store.accept([message]);
  switch (result?.kind) {
    case 'accepted':
      return message.id;
    case 'refused':
      throw new Error(`the account may not send now: ${result.reason}`);
    case 'locked':
      throw new Error('the account is locked');
    default:
      throw new Error('the store did not accept the message');
  }
}
