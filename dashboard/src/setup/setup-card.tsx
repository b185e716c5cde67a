/**
 * The setup checklist on the overview: one row per step with its state. An open row shows how to complete the step. If
 * the installation has accepted a message, the card is collapsed at first, so that the figures of the overview are
 * visible without scrolling.
 */
import { Button, UnstyledButton } from '@mantine/core';
import { IconCheck, IconChevronDown, IconMinus } from '@tabler/icons-react';
import { useId, useState } from 'react';
import { Link } from 'wouter';
import type { Setup, SetupStep } from '../../../src/operations/installation.ts';
import type { Session } from '../../../src/operator/schemas.ts';
import { Card } from '../parts/card';
import { Copyable } from '../parts/copyable';
import { TextWithCode } from '../parts/text-with-code';
import { TestMessage } from './test-message';
import './setup.css';

interface SetupCardProps {
  readonly setup: Setup;
  readonly session: Session;
  readonly isCollapsed: boolean;
  readonly onHide: () => void;
}

export function SetupCard({ setup: { steps, isComplete }, session, isCollapsed, onHide }: SetupCardProps) {
  const [isExpanded, setExpanded] = useState(!isCollapsed);
  const listId = useId();
  // Null until the operator opens or closes a row. While the value is null, the row of `initialStep` is open.
  const [chosen, setChosen] = useState<SetupStep['step'] | 'none' | null>(null);
  // The next step when the card is first shown. Its row stays open when the step is done, and shows the result.
  const [initialStep] = useState(() => findNextStep(steps)?.step ?? 'none');
  const openedStep = chosen ?? initialStep;
  const requiredSteps = steps.filter(({ state }) => state === 'done' || state === 'open');
  const doneCount = requiredSteps.filter(({ state }) => state === 'done').length;
  const nextStep = findNextStep(steps);
  return (
    <Card
      title={isComplete ? 'Setup is complete' : 'Set up this installation'}
      secondary={
        <span role="status">
          {doneCount} of {requiredSteps.length} steps done
          {isExpanded || nextStep === undefined ? '' : `, next: ${nextStep.title}`}
        </span>
      }
      aside={
        <>
          <Button
            variant="default"
            size="xs"
            aria-expanded={isExpanded}
            aria-controls={listId}
            onClick={() => setExpanded(!isExpanded)}
          >
            {isExpanded ? 'Collapse' : 'Show steps'}
          </Button>
          <Button variant="default" size="xs" onClick={onHide}>
            {isComplete ? 'Close' : 'Hide'}
          </Button>
        </>
      }
      flush
    >
      <progress className="setup-progress" max={requiredSteps.length} value={doneCount} aria-label="Steps done" />
      <ol className="setup" id={listId} hidden={!isExpanded}>
        {isExpanded
          ? steps.map((step) => (
              <Row
                key={step.step}
                step={step}
                session={session}
                isOpened={openedStep === step.step}
                onToggle={() => setChosen(openedStep === step.step ? 'none' : step.step)}
              />
            ))
          : null}
      </ol>
    </Card>
  );
}

/**
 * Returns the first open step that has a command, or the first open step if none has a command. A step without a
 * command cannot be completed until another step is done or an account exists.
 */
function findNextStep(steps: Setup['steps']): SetupStep | undefined {
  const openSteps = steps.filter(({ state }) => state === 'open');
  return openSteps.find(({ command }) => command !== null) ?? openSteps[0];
}

const STATE_NAMES: Readonly<Record<SetupStep['state'], string>> = {
  done: 'Done',
  open: 'Open',
  optional: 'Optional',
  'not-needed': 'Not needed',
};

interface RowProps {
  readonly step: SetupStep;
  readonly session: Session;
  readonly isOpened: boolean;
  readonly onToggle: () => void;
}

function Row({ step, session, isOpened, onToggle }: RowProps) {
  const { step: code, title, state, detail } = step;
  const panelId = `setup-${code}`;
  return (
    <li data-state={state}>
      <UnstyledButton className="setup-row" aria-expanded={isOpened} aria-controls={panelId} onClick={onToggle}>
        <StateIcon state={state} />
        <span className="two-lines">
          <span>{title}</span>
          <span>
            <TextWithCode text={detail} />
          </span>
        </span>
        <span className="setup-state">{STATE_NAMES[state]}</span>
        <IconChevronDown size={16} stroke={1.8} aria-hidden className="setup-chevron" />
      </UnstyledButton>
      {isOpened ? (
        <div id={panelId} className="setup-panel">
          <Instructions step={step} session={session} />
        </div>
      ) : null}
    </li>
  );
}

function StateIcon({ state }: Pick<SetupStep, 'state'>) {
  switch (state) {
    case 'done':
      return (
        <span className="setup-icon tone-success">
          <IconCheck size={14} stroke={2.4} aria-hidden />
        </span>
      );
    case 'open':
      return <span className="setup-icon" />;
    case 'optional':
    case 'not-needed':
      return (
        <span className="setup-icon tone-neutral">
          <IconMinus size={14} stroke={2.4} aria-hidden />
        </span>
      );
  }
}

/**
 * Shows how to complete a step: a sentence, a command, and a link to a page. The step `first-message` shows the form
 * for a test message instead of the command.
 */
function Instructions({ step: { step, action, command, page }, session }: Pick<RowProps, 'step' | 'session'>) {
  return (
    <>
      {action === null ? null : (
        <div className="wrap">
          <TextWithCode text={action} />
        </div>
      )}
      {step === 'first-message' ? (
        <TestMessage session={session} isFirst />
      ) : command === null ? null : (
        <Copyable value={command} label="the command" block />
      )}
      {page === null ? null : (
        <div>
          <Button component={Link} href={page} variant="default" size="xs">
            {PAGE_LABELS[step]}
          </Button>
        </div>
      )}
    </>
  );
}

const PAGE_LABELS: Readonly<Record<SetupStep['step'], string>> = {
  'first-message': 'Show messages',
  provider: 'Show providers',
  domain: 'Show domains',
  records: 'Show the records',
  feedback: 'Show the state',
  webhook: 'Show webhooks',
};
