/**
 * Adds a rule to the inbox. Presets fill the fields with common replies, and a note states the effect of the answer.
 */
import { Group, NativeSelect, NumberInput, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { InboxRuleEntry } from '../../../src/operations/inbox-rules.ts';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';

type AnswerKind = InboxRuleEntry['answer']['kind'];

interface Preset {
  readonly value: string;
  readonly label: string;
  readonly answer: AnswerKind;
  readonly code: string;
  readonly enhanced: string;
  readonly text: string;
}

const createReplyPreset = (value: string, label: string, code: string, enhanced: string, text: string): Preset => ({
  ...{ value, label, answer: 'reply', code, enhanced, text },
});
const createPreset = (value: AnswerKind, label: string): Preset => ({
  ...{ value, label, answer: value, code: '', enhanced: '', text: '' },
});

const UNAVAILABLE_PRESET = createReplyPreset(
  'unavailable',
  'Temporary failure (451)',
  '451',
  '4.3.0',
  'Try again later',
);
const PRESETS: readonly Preset[] = [
  UNAVAILABLE_PRESET,
  createReplyPreset('full', 'Mailbox full (452)', '452', '4.2.2', 'Mailbox full'),
  createReplyPreset('greylisted', 'Greylisted (450)', '450', '4.7.1', 'Greylisted, try again in five minutes'),
  createReplyPreset('unknown', 'Unknown mailbox (550)', '550', '5.1.1', 'No such user'),
  createReplyPreset('policy', 'Refused by policy (550)', '550', '5.7.1', 'Message refused by policy'),
  createPreset('delay', 'Delay before delivery'),
  createPreset('disconnect', 'Connection lost before the end of the message'),
  createPreset('unanswered', 'Connection lost after the final dot'),
];

/** The effect of each kind of answer. */
const EFFECTS_BY_ANSWER: Readonly<Record<AnswerKind, string>> = {
  reply:
    'A 4xx reply defers the message. A 5xx reply bounces it; a reply for an unknown mailbox also adds the recipient to the suppression list of the account. The bounce counts toward the reputation of the account.',
  delay: 'The message is captured after the delay.',
  disconnect: 'The message is deferred and retried.',
  unanswered: 'POSTRIDER_ON_UNCERTAIN decides whether the message is sent again or held as uncertain.',
};

export function RuleDialog({ onClose }: { readonly onClose: () => void }) {
  const [match, setMatch] = useState('');
  const [preset, setPreset] = useState<Preset>(UNAVAILABLE_PRESET);
  const [code, setCode] = useState<string | number>(UNAVAILABLE_PRESET.code);
  const [enhanced, setEnhanced] = useState(UNAVAILABLE_PRESET.enhanced);
  const [text, setText] = useState(UNAVAILABLE_PRESET.text);
  const [delay, setDelay] = useState('5s');
  const [times, setTimes] = useState<string | number>(1);
  const [expires, setExpires] = useState('24h');
  const reply = preset.answer === 'reply' ? { code, enhanced: enhanced.trim(), text: text.trim() } : {};
  const add = useApiMutation(
    () =>
      post<InboxRuleEntry>('/inbox/rules', {
        ...{ match: match.trim(), answer: preset.answer, times, expires: expires.trim() },
        ...reply,
        ...(preset.answer === 'delay' ? { delay: delay.trim() } : {}),
      }),
    ['inbox'],
    (rule) =>
      `${rule.match}: ${rule.answer.summary}.${rule.effect.suppresses ? ' The recipient will be suppressed.' : ''}`,
  );
  const findError = (field: string) => findFieldError(add.error, field);
  const fields = ['match', 'code', 'enhanced', 'text', 'delay', 'times', 'expires'];
  return (
    <FormDialog
      opened
      title="Add a rule"
      action="Add rule"
      busy={add.isPending}
      disabled={match.trim() === ''}
      error={add.error}
      hasFieldError={fields.some((field) => findError(field) !== null)}
      onSubmit={() => add.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <TextInput
        label="Address or domain"
        description="The rule answers the next delivery attempts to it."
        placeholder="ada@example.com or example.com"
        value={match}
        onChange={(event) => setMatch(event.currentTarget.value)}
        error={findError('match')}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <NativeSelect
        label="Answer"
        data={PRESETS.map(({ value, label }) => ({ value, label }))}
        value={preset.value}
        onChange={(event) => {
          const chosenPreset = PRESETS.find(({ value }) => value === event.currentTarget.value) ?? UNAVAILABLE_PRESET;
          setPreset(chosenPreset);
          setCode(chosenPreset.code);
          setEnhanced(chosenPreset.enhanced);
          setText(chosenPreset.text);
        }}
      />
      {preset.answer === 'reply' ? (
        <>
          <Group grow align="flex-start">
            <NumberInput
              label="Reply code"
              value={code}
              onChange={setCode}
              error={findError('code')}
              min={400}
              max={559}
              hideControls
            />
            <TextInput
              label="Enhanced code"
              value={enhanced}
              onChange={(event) => setEnhanced(event.currentTarget.value)}
              error={findError('enhanced')}
              autoComplete="off"
            />
          </Group>
          <TextInput
            label="Text"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            error={findError('text')}
            maxLength={200}
            autoComplete="off"
          />
        </>
      ) : null}
      {preset.answer === 'delay' ? (
        <TextInput
          label="Delay"
          description="A duration of at most 5m"
          value={delay}
          onChange={(event) => setDelay(event.currentTarget.value)}
          error={findError('delay')}
          autoComplete="off"
        />
      ) : null}
      <Text size="sm" c="dimmed">
        {EFFECTS_BY_ANSWER[preset.answer]}
      </Text>
      <Group grow align="flex-start">
        <NumberInput
          label="Attempts"
          value={times}
          onChange={setTimes}
          error={findError('times')}
          min={1}
          max={1_000}
        />
        <TextInput
          label="Ends after"
          value={expires}
          onChange={(event) => setExpires(event.currentTarget.value)}
          error={findError('expires')}
          autoComplete="off"
        />
      </Group>
    </FormDialog>
  );
}
