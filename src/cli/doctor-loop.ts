/** `doctor --loop`: what the trial of the loop needs of this installation. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Settings } from '../config/settings.ts';
import { type Finding, failure } from '../doctor/finding.ts';
import { checkLoop, type Trial } from '../doctor/loop.ts';
import { trialOf } from '../message/return-path.ts';
import type { Account } from '../model/account.ts';
import type { NewMail } from '../model/message.ts';
import { mailIds } from '../model/message-id.ts';
import { describeError } from '../printing/error-line.ts';
import type { Store } from '../store/contract.ts';
import { type Context, findAccount } from './context.ts';
import { type ProgressStream, StatusLine } from './progress.ts';

const CHECK = 'loop';
const LOOK_EVERY_MS = 250;
export interface LoopFlags {
  readonly account?: string | undefined;
  readonly boundMs: number;
}

/** Sends and waits; never rejects. */
export async function examineLoop(
  context: Context,
  terminal: ProgressStream,
  { account: name, boundMs }: LoopFlags,
): Promise<readonly Finding[]> {
  const settings = context.settings();
  const trials = trialsOf(settings);
  if (!Array.isArray(trials)) return [trials as Finding];
  const line = new StatusLine(terminal);
  const { clock } = context;
  const startedAt = clock.now();
  try {
    return await context.withStore(async (store) => {
      const accounts = name === undefined ? await store.listAccounts() : [await findAccount(store, name)];
      const [first] = accounts;
      if (first === undefined) {
        return [
          failure(
            CHECK,
            'there is no account to send with',
            'start the service once, or `postrider account create NAME`',
          ),
        ];
      }
      const sender = await senderOf(store, accounts, settings);
      if (sender === null) {
        const who = name === undefined ? 'no account has an' : `the account ${name} has no`;
        const remedy = `\`postrider domain add ${first.name} DOMAIN\`, publish its records, \`postrider domain verify DOMAIN\``;
        return [failure(CHECK, `${who} authenticated domain to send from`, remedy)];
      }
      const { account, from } = sender;
      const ids = mailIds(await store.newestId(), randomUUID);
      return checkLoop({
        trials,
        send: (to) => submit(store, trialMail(ids.next(clock.now()), account, from, to, clock.now())),
        look: (id) => store.showMail(id),
        clock,
        pause: async () => {
          await wait(LOOK_EVERY_MS);
          line.show(`waiting for what comes back, ${Math.round((clock.now() - startedAt) / 1000)} s …`);
        },
        boundMs,
      });
    });
  } catch (error) {
    return [failure(CHECK, describeError(error), 'put that right, and try again')];
  } finally {
    line.end();
  }
}

/** What can be tried with these settings, or why nothing can. */
function trialsOf({
  transport,
  returnPathDomain,
  feedbackListen,
  feedbackHttpListen,
  sesQueue,
}: Settings): Trial[] | Finding {
  switch (transport.kind) {
    case 'capture':
      return failure(CHECK, 'nothing comes back with capture:', 'set POSTRIDER_TRANSPORT to a provider or a relay');
    case 'ses': {
      const remedy =
        feedbackHttpListen === null && sesQueue === null
          ? 'set POSTRIDER_SES_QUEUE, or POSTRIDER_FEEDBACK_HTTP_LISTEN and POSTRIDER_SES_TOPICS (docs/operating.md, Amazon SES)'
          : 'see that the identity or configuration set sends its bounces and complaints to the topic, and that a service runs with the role feedback';
      return [
        { check: 'loop bounce', to: 'bounce@simulator.amazonses.com', expects: 'bounced', remedy },
        { check: 'loop complaint', to: 'complaint@simulator.amazonses.com', expects: 'complained', remedy },
      ];
    }
    case 'smtp': {
      if (returnPathDomain === null || feedbackListen === null) {
        return failure(
          CHECK,
          'bounces do not come back to this service: it has no return path of its own',
          'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN (docs/operating.md, What comes back)',
        );
      }
      const remedy = `see that the relay keeps the envelope sender, that the MX of ${returnPathDomain} leads to the feedback listener, and that port 25 there is open`;
      return [{ check: 'loop bounce', to: trialOf(returnPathDomain) ?? '', expects: 'bounced', remedy }];
    }
  }
}

/** The first of the accounts that has an address to send from, and that; a locked one only where there is no other. */
async function senderOf(
  store: Store,
  accounts: readonly Account[],
  { senders, returnPathDomain }: Settings,
): Promise<{ readonly account: Account; readonly from: string } | null> {
  const authenticated = (await store.listDomains()).filter(({ status }) => status === 'authenticated');
  const [locked, free] = [accounts.filter((one) => one.locked !== null), accounts.filter((one) => one.locked === null)];
  for (const account of [...free, ...locked]) {
    const own = authenticated.find(({ accountId }) => accountId === account.id);
    const domain = own?.name ?? (senders === 'any' ? returnPathDomain : null);
    if (domain !== null) return { account, from: `postrider-doctor@${domain}` };
  }
  return null;
}

function trialMail(id: string, account: Account, from: string, to: string, now: number): NewMail {
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
    suppressed: false,
  };
}

/** Resolves to its id once it is accepted. */
async function submit(store: Store, mail: NewMail): Promise<string> {
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
