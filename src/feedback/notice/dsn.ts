/** Delivery status notifications (RFC 3464): one notice for each recipient that the report names. */
import type { Evidence, Notice } from '../../record/notice.ts';
import { leaves, type Part, parseFields } from './parts.ts';
import { hostName, oneLine, reportedAddress, typedValue } from './text.ts';
import { type Judgement, judge, statusIn } from './verdict.ts';

const MOST_RECIPIENTS = 100;
const TYPES: readonly string[] = ['message/delivery-status', 'message/global-delivery-status'];

type Fields = readonly (readonly [name: string, value: string])[];

/** What the report's machine-readable part says; empty where there is none, or it names no recipient. `told` is its text for people. */
export function dsnNotices(message: Part, told: string): readonly Notice[] {
  const notices: Notice[] = [];
  for (const part of leaves(message)) {
    if (!TYPES.includes(part.type)) continue;
    const blocks = part
      .text()
      .replaceAll('\r\n', '\n')
      .split(/\n[ \t]*\n/);
    const groups = blocks.map(parseFields).filter((fields) => fields.length > 0);
    const perMessage = groups.find((fields) => !isRecipient(fields)) ?? [];
    for (const fields of groups) {
      if (notices.length >= MOST_RECIPIENTS) return notices;
      if (isRecipient(fields)) notices.push(recipientNotice(fields, perMessage, told));
    }
  }
  return notices;
}

/** Section 2.3: Final-Recipient and Action are what a recipient's group must have. */
function isRecipient(fields: Fields): boolean {
  return ['final-recipient', 'original-recipient', 'action'].some((name) => fieldOf(fields, name) !== null);
}

function recipientNotice(fields: Fields, perMessage: Fields, told: string): Notice {
  const final = reportedAddress(fieldOf(fields, 'final-recipient'));
  const original = reportedAddress(fieldOf(fields, 'original-recipient'), true);
  const said = typedValue(fieldOf(fields, 'diagnostic-code'));
  const status = statusOf(fieldOf(fields, 'status'));
  const evidence: Evidence = {
    status: status ?? statusIn(said ?? ''),
    diagnostic: said ?? oneLine(told, 300),
    reportingHost: hostName(fieldOf(fields, 'remote-mta')) ?? hostName(fieldOf(perMessage, 'reporting-mta')),
  };
  const about = {
    recipient: original ?? final,
    alias: original !== null && final !== null && original.toLowerCase() !== final.toLowerCase() ? final : null,
    evidence,
  };
  switch (actionOf(fieldOf(fields, 'action'), status)) {
    case 'failed':
      return { ...about, kind: 'bounce', ...verdictOf(said, status, told) };
    case 'delayed':
      return { ...about, kind: 'delayed' };
    case 'delivered':
    case 'relayed':
    case 'expanded':
      return { ...about, kind: 'delivered' };
  }
}

type Action = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded';
const ACTIONS: readonly Action[] = ['failed', 'delayed', 'delivered', 'relayed', 'expanded'];

/** Section 2.3.3. Where it is missing or made up, the status says which. */
function actionOf(written: string | null, status: string | null): Action {
  const word = written?.trim().toLowerCase() ?? '';
  const known = ACTIONS.find((action) => word.startsWith(action)) ?? (word.startsWith('fail') ? 'failed' : null);
  if (known !== null) return known;
  if (status?.startsWith('2') === true) return 'delivered';
  return status?.startsWith('4') === true ? 'delayed' : 'failed';
}

/** The remote server's words first; where they say nothing that is known, the text for people. */
function verdictOf(said: string | null, status: string | null, told: string): Omit<Judgement, 'certain'> {
  const machine = judge(said ?? '', status);
  const vague = said === null || status === null || status.endsWith('.0.0');
  if (machine.mailboxMissing || !machine.permanent || !vague) return bare(machine);
  const human = judge(told.slice(0, 2_000), status);
  return bare(human.certain && (human.mailboxMissing || !human.permanent) ? human : machine);
}

function bare({ permanent, mailboxMissing }: Judgement): Omit<Judgement, 'certain'> {
  return { permanent, mailboxMissing };
}

/** `5.1.1 (bad destination mailbox address)` as `5.1.1`; null where it is no status (RFC 3463 section 2). */
function statusOf(value: string | null): string | null {
  const match = /^\s*([245])\.([0-9]{1,3})\.([0-9]{1,3})(?![0-9])/.exec(value ?? '');
  return match === null ? null : `${match[1]}.${Number(match[2])}.${Number(match[3])}`;
}

function fieldOf(fields: Fields, name: string): string | null {
  return fields.find(([found, value]) => found === name && value !== '')?.[1] ?? null;
}
