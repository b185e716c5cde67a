/**
 * Subject and text of notifications by mail. Text of a next hop or an operator may be in it, so control characters are
 * replaced. Pure.
 */
import { ATTENTION_CODES, getAttentionCommand } from '../model/attention.ts';
import type { AttentionChange, MailPayload, NotifiedItem } from '../model/notification.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatSpan, formatTime, shortenText, toSentence } from '../printing/text.ts';

const MAX_SUBJECT_TEXT_LENGTH = 120;
const MAX_LISTED_ITEMS = 50;

/** `operatorUrl` has no slash at its end; without it the mail contains no links. */
export function buildNotificationMail(change: AttentionChange, operatorUrl: string | null): MailPayload {
  const { at, began, ended, ongoingCount } = change;
  const sections = [
    `${formatTime(at)}: ${describeCounts(began.length, ended.length)} ${countProblems(ongoingCount)} ${ongoingCount === 1 ? 'needs' : 'need'} attention now.`,
    ...listSection('Began', began, MAX_LISTED_ITEMS, operatorUrl),
    ...listSection('Ended', ended, MAX_LISTED_ITEMS - Math.min(began.length, MAX_LISTED_ITEMS), operatorUrl),
    ...(operatorUrl === null ? [] : [`Overview: ${operatorUrl}/`]),
    'Postrider sent this message because the setting POSTRIDER_NOTIFY contains this address.',
  ];
  return { subject: buildSubject(began, ended), text: `${sections.join('\n\n')}\n` };
}

function buildSubject(began: readonly NotifiedItem[], ended: readonly NotifiedItem[]): string {
  const [first] = [...began, ...ended];
  const moreCount = began.length + ended.length - 1;
  const moreText = moreCount === 0 ? '' : ` (${moreCount} more)`;
  const text = shortenText(toPrintable(first?.text ?? ''), MAX_SUBJECT_TEXT_LENGTH);
  return `Postrider: ${began.length === 0 ? 'ended: ' : ''}${text}${moreText}`;
}

function describeCounts(beganCount: number, endedCount: number): string {
  const parts = [
    ...(beganCount === 0 ? [] : [`${countProblems(beganCount)} began`]),
    ...(endedCount === 0 ? [] : [`${countProblems(endedCount)} ended`]),
  ];
  return `${parts.join(', ')}.`;
}

function countProblems(count: number): string {
  return count === 1 ? '1 problem' : `${count} problems`;
}

function listSection(
  title: string,
  items: readonly NotifiedItem[],
  limit: number,
  operatorUrl: string | null,
): readonly string[] {
  if (items.length === 0) return [];
  const itemTexts = items.slice(0, limit).map((item) => describeItem(item, operatorUrl));
  const omittedCount = items.length - itemTexts.length;
  const omittedText =
    omittedCount === 0 ? [] : [`${omittedCount} more. \`postrider overview\` lists what needs attention.`];
  return [title.toUpperCase(), ...itemTexts, ...omittedText];
}

function describeItem(item: NotifiedItem, operatorUrl: string | null): string {
  const { code, level, text, remedy, page, beganAt, endedAt } = item;
  const title = `${level === 'failure' ? 'Failure' : 'Warning'}: ${toSentence(toPrintable(text))}`;
  if (endedAt !== null)
    return [title, `  From ${formatTime(beganAt)} to ${formatTime(endedAt)} (${formatSpan(endedAt - beganAt)})`].join(
      '\n',
    );
  return [
    title,
    `  Consequence: ${ATTENTION_CODES[code].consequence}`,
    `  Remedy: ${toSentence(toPrintable(remedy))}`,
    `  Command: ${toPrintable(getAttentionCommand(item))}`,
    ...(operatorUrl === null ? [] : [`  Page: ${operatorUrl}${page ?? '/'}`]),
  ].join('\n');
}
