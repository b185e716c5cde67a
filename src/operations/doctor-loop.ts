/**
 * The trial of the way back: sends a message to a recipient that is known to bounce, and waits for its report. It costs one
 * message each, and touches no reputation and no suppression list. What fails is a finding with its remedy.
 */
import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { parseDuration } from '../config/units.ts';
import { type Finding, failure } from '../doctor/finding.ts';
import type { DoctorStore } from '../doctor/installation.ts';
import { type LoopTest, runLoopTests } from '../doctor/loop.ts';
import { loopRecipient } from '../message/return-path.ts';
import type { Account } from '../model/account.ts';
import type { NewMessage } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { createMessageIdGenerator } from '../model/submission.ts';
import { describeError } from '../printing/error-line.ts';
import type { AcceptStore } from '../store/contract.ts';
import type { DoctorContext } from './context.ts';
import { Findings } from './doctor.ts';
import { accountNotFound, invalid, memberResult, ok } from './errors.ts';
import type { Operation } from './operation.ts';

const CHECK = 'loop';
const LOOK_EVERY_MS = 250;
/** A request of the API waits so long at most. */
const MAX_WITHIN_MS = 3_600_000;

const Input = Type.Object({
  account: Type.Optional(
    Type.String({ description: 'The account that sends; the first with an authenticated domain unless given.' }),
  ),
  within: Type.String({ default: '2m', description: 'How long to wait, at most `1h`.' }),
});

/** Accepts the messages of the trial and waits for their reports. */
export const tryLoop: Operation<typeof Input, typeof Findings, DoctorContext> = {
  name: 'doctor.loop',
  id: 'tryLoop',
  summary: 'Send messages that bounce, and wait for what comes back',
  // The trial is in the history of its messages; it changes no setting and no list.
  changes: false,
  input: Input,
  result: Findings,
  errors: [],
  async run({ account, within }, context) {
    const bound = memberResult('within', parseDuration(within));
    if (!bound.ok) return bound;
    if (bound.value > MAX_WITHIN_MS) return invalid('within', 'at most 1h');
    const { settings, machineClock: clock, installation, progress } = context;
    const trials = trialsOf(settings);
    if (!Array.isArray(trials)) return ok([trials as Finding]);
    const startedAt = clock.now();
    try {
      const findings = await installation.withStore(async (store) => {
        const sender = await findSender(store, settings, account);
        if (!('from' in sender)) return [sender];
        const ids = createMessageIdGenerator(await store.newestId(), randomUUID);
        return runLoopTests({
          tests: trials,
          send: (to) => submit(store, trialMail(ids.next(clock.now()), sender.account, sender.from, to, clock.now())),
          readMessage: (id) => store.findMessage(id),
          clock,
          waitForPoll: async () => {
            await installation.wait(LOOK_EVERY_MS);
            progress(`waiting for what comes back, ${Math.round((clock.now() - startedAt) / 1000)} s …`);
          },
          timeoutMs: bound.value,
        });
      });
      return ok([...findings]);
    } catch (error) {
      return ok([failure(CHECK, describeError(error), 'put that right, and try again')]);
    }
  },
};

interface Sender {
  readonly account: Account;
  readonly from: string;
}

/** The account that sends the trial with its address, or why there is none. */
async function findSender(
  store: Pick<DoctorStore, 'listAccounts' | 'listDomains'>,
  settings: Settings,
  name: string | undefined,
): Promise<Sender | Finding> {
  const all = await store.listAccounts();
  const accounts = name === undefined ? all : all.filter((one) => one.name === name);
  const [first] = accounts;
  if (first === undefined) {
    return name === undefined
      ? failure(CHECK, 'there is no account to send with', 'start the service once, or `postrider account create NAME`')
      : failure(CHECK, accountNotFound(name).error.message, 'put that right, and try again');
  }
  const sender = await senderOf(store, accounts, settings);
  if (sender !== null) return sender;
  const who = name === undefined ? 'no account has an' : `the account ${name} has no`;
  const remedy = `\`postrider domain add ${first.name} DOMAIN\`, publish its records, \`postrider domain verify DOMAIN\``;
  return failure(CHECK, `${who} authenticated domain to send from`, remedy);
}

/** What can be tried with these settings, or why nothing can. */
function trialsOf({
  transport,
  returnPathDomain,
  feedbackListen,
  feedbackHttpListen,
  sesQueue,
}: Settings): LoopTest[] | Finding {
  switch (transport.kind) {
    case 'capture':
      return failure(CHECK, 'nothing comes back with capture:', 'set POSTRIDER_TRANSPORT to a provider or a relay');
    case 'ses': {
      const remedy =
        feedbackHttpListen === null && sesQueue === null
          ? 'set POSTRIDER_SES_QUEUE, or POSTRIDER_FEEDBACK_HTTP_LISTEN and POSTRIDER_SES_TOPICS (docs/providers.md)'
          : 'see that the identity or configuration set sends its bounces and complaints to the topic, and that a service runs with the role feedback';
      return [
        { check: 'loop bounce', to: 'bounce@simulator.amazonses.com', expectedState: 'bounced', remedy },
        { check: 'loop complaint', to: 'complaint@simulator.amazonses.com', expectedState: 'complained', remedy },
      ];
    }
    case 'smtp': {
      if (returnPathDomain === null || feedbackListen === null) {
        return failure(
          CHECK,
          'bounces do not come back to this service: it has no return path of its own',
          'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN (docs/feedback.md)',
        );
      }
      const remedy = `see that the relay keeps the envelope sender, that the MX of ${returnPathDomain} leads to the feedback listener, and that port 25 there is open`;
      return [{ check: 'loop bounce', to: loopRecipient(returnPathDomain) ?? '', expectedState: 'bounced', remedy }];
    }
  }
}

/** The first of the accounts that has an address to send from, and that; a locked one only where there is no other. */
async function senderOf(
  store: Pick<DoctorStore, 'listDomains'>,
  accounts: readonly Account[],
  { senders, returnPathDomain }: Settings,
): Promise<Sender | null> {
  const authenticated = (await store.listDomains()).filter(({ status }) => status === 'authenticated');
  const [locked, free] = [accounts.filter((one) => one.locked !== null), accounts.filter((one) => one.locked === null)];
  for (const account of [...free, ...locked]) {
    const own = authenticated.find(({ accountId }) => accountId === account.id);
    const domain = own?.name ?? (senders === 'any' ? returnPathDomain : null);
    if (domain !== null) return { account, from: `postrider-doctor@${domain}` };
  }
  return null;
}

function trialMail(id: string, account: Account, from: string, to: string, now: number): NewMessage {
  return {
    id,
    accountId: account.id,
    // Of no key: that it is a trial, which counts nowhere.
    keyId: 0,
    acceptedAt: now,
    to,
    recipient: to,
    from,
    subject: 'A trial of the way back',
    message: 'This message is sent by `postrider doctor --loop` to see its bounce or complaint come back.',
    idempotency: null,
    lease: null,
    suppressedBy: null,
  };
}

/** Resolves to its id once it is accepted. */
async function submit(store: Pick<AcceptStore, 'accept'>, mail: NewMessage): Promise<string> {
  const [answer] = await store.accept([mail]);
  switch (answer?.kind) {
    case 'accepted':
      return mail.id;
    case 'refused':
      throw new Error(`the account may not send now: ${answer.reason}`);
    case 'locked':
      throw new Error('the account is locked');
    default:
      throw new Error('the store did not accept the message');
  }
}
