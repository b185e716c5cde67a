import type { Account } from '../model/account.ts';
import { type AttentionCode, RECENT_USE_MS, VOLUME_WARNING_FRACTION } from '../model/attention.ts';
import { getHoldState, type Hold } from '../model/hold.ts';
import { getFirstRecipient } from '../model/outcome.ts';
import { formatSpan, formatTime, shortenText } from '../printing/text.ts';
import { type Check, type Facts, type Problem, report, reportStep } from './facts.ts';

const OLD_MESSAGE_AGE_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;
const MAX_PURGE_DELAY_MS = 3_600_000;
const MAX_TEXT_LENGTH = 200;

export const queue: Check = {
  problems({ queue: { uncertain, oldest }, holds, now, settings, store: { oldestEndAgeMs } }) {
    const problems: Problem[] = holds.flatMap((hold) => describeHold(hold, now) ?? []);
    if (uncertain > 0)
      problems.push(
        report('messages-uncertain', null, '/messages?state=uncertain').warning(
          `${uncertain} ${uncertain === 1 ? 'message is' : 'messages are'} uncertain: sent without a recorded reply`,
          'Decide for each message: retry sends it again, cancel ends it without another attempt',
        ),
      );
    if (oldest !== null && now - oldest.acceptedAt > OLD_MESSAGE_AGE_MS)
      problems.push(
        report('queue-delayed', null, `/messages/${oldest.id}`).warning(
          `The oldest message in the queue was accepted ${formatSpan(now - oldest.acceptedAt)} ago`,
          `The page of the message explains why the message waits; the message expires at the age of ${formatSpan(settings.maxAgeMs)}`,
        ),
      );
    const lateMs = (oldestEndAgeMs ?? 0) - settings.keepHistoryMs;
    if (lateMs > MAX_PURGE_DELAY_MS)
      problems.push(
        report('purge-late').warning(
          `Messages should have been purged ${formatSpan(lateMs)} ago (POSTRIDER_KEEP_HISTORY)`,
          'Run a node with the role deliver; if one runs, its log says why the purge fails, or the purge is still catching up',
        ),
      );
    return problems;
  },
  steps({ store: { everAccepted }, settings: { transport }, testSender }) {
    const { done, open } = reportStep('first-message', 'Send a test message', '/messages');
    if (everAccepted) return [done('A message has been accepted.')];
    if (testSender === null)
      return [
        open(
          'No message has been accepted. Messages of every sender are refused until a domain is authenticated.',
          'Add a domain and publish its records first.',
          null,
        ),
      ];
    const recipient = getFirstRecipient(transport.kind);
    const action =
      transport.kind === 'capture'
        ? 'Submit a message. The Inbox page shows the message.'
        : 'Submit a message. The mailbox simulator receives the message, so Postrider does not send it to the provider.';
    const command = `postrider send --to ${recipient} --from ${testSender} --subject Hello --message 'It works.'`;
    return [open('No message has been accepted.', action, command)];
  },
};

function describeHold(hold: Hold, now: number): Problem | null {
  const { id, createdAt, until, reason } = hold;
  if (until !== null || getHoldState(hold, now) !== 'active' || now - createdAt < DAY_MS) return null;
  return report('hold-without-end', String(id), '/holds').warning(
    `Hold ${id} has stopped messages for ${formatSpan(now - createdAt)} and has no end: ${shortenText(reason, MAX_TEXT_LENGTH)}`,
    `Release it with \`postrider hold release ${id}\`, or replace it with a hold that has --for`,
  );
}

export const accounts: Check = {
  problems: ({ store, now }) => [
    ...store.accounts.flatMap((account) => listAccountProblems(account, now)),
    ...store.keys.map((key) => describeKey(key, now)),
  ],
};

function getAccountPage(name: string): string {
  return `/accounts/${encodeURIComponent(name)}`;
}

function listAccountProblems({ name, locked, warning, limits, volumeUsed }: Account, now: number): readonly Problem[] {
  const create = (code: AttentionCode) => report(code, name, getAccountPage(name));
  if (locked !== null) {
    const text = `Account ${name} is locked: ${shortenText(locked.reason, MAX_TEXT_LENGTH)}`;
    return [create('account-locked').failure(text, 'Remove the cause, then unlock the account')];
  }
  const problems: Problem[] = [];
  if (warning !== null) {
    const remedy = 'Check the counts on the account page, and the recipients of the messages of the account';
    problems.push(create('account-warned').warning(`Account ${name} has reached half of a lock threshold`, remedy));
  }
  const { volume, volumeExpiresAt } = limits;
  const remedy = 'Set a new volume, or inform the owner of the account';
  if (volume !== null && volumeUsed >= volume)
    problems.push(create('volume-exhausted').failure(`Account ${name} has used its volume of ${volume}`, remedy));
  else if (volume !== null && volumeUsed >= volume * VOLUME_WARNING_FRACTION) {
    const text = `Account ${name} has used ${volumeUsed} of its volume of ${volume}`;
    problems.push(create('volume-low').warning(text, remedy));
  }
  if (volumeExpiresAt !== null && volumeExpiresAt <= now) {
    const text = `The volume of account ${name} expired at ${formatTime(volumeExpiresAt)}`;
    problems.push(create('volume-expired').failure(text, remedy));
  } else if (volumeExpiresAt !== null && volumeExpiresAt - now < 7 * DAY_MS) {
    const text = `The volume of account ${name} expires in ${formatSpan(volumeExpiresAt - now)}`;
    problems.push(create('volume-expiring').warning(text, remedy));
  }
  return problems;
}

function describeKey(key: Facts['store']['keys'][number], now: number): Problem {
  const { id, name, account, expiresAt, lastUsedAt, successor } = key;
  const { warning, failure } = report('key-expiring', `key_${id}`, getAccountPage(account));
  const remainingMs = (expiresAt ?? now) - now;
  const text = `key_${id} (${name}) of account ${account} expires in ${formatSpan(remainingMs)}`;
  if (successor !== null)
    return warning(
      `${text}: clients still use it although key_${successor} replaces it`,
      'Configure the new key in all clients before the expiry',
    );
  const remedy = 'Rotate the key, or configure another key in its clients before the expiry';
  if (lastUsedAt === null || now - lastUsedAt >= RECENT_USE_MS)
    return warning(`${text}: every key of the account expires soon`, remedy);
  const create = remainingMs < DAY_MS ? failure : warning;
  return create(`${text}: last used ${formatSpan(now - lastUsedAt)} ago`, remedy);
}
