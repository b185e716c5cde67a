/** The button that opens the form for a test message in a dialog. */
import { Button, Modal } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconSend } from '@tabler/icons-react';
import type { Session } from '../../../src/operator/schemas.ts';
import { TestMessage } from './test-message';

export function TestMessageButton({ session }: { readonly session: Session }) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button onClick={open} leftSection={<IconSend size={16} stroke={1.6} aria-hidden />}>
        Send test
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        title="Send a test message"
        size="lg"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <TestMessage session={session} isFirst={false} />
      </Modal>
    </>
  );
}
